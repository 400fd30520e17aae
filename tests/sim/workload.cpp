#include "sim/cluster/workload/workload.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/cluster/price/price.h"
#include "sim/cluster/workload/play.h"
#include "sim/hardware/timeline/summary.h"
#include "tests/why.h"

namespace trellis::sim {
namespace {

std::string fault_of(std::string_view text) {
  return why([&] { read_graph("step", text); });
}

PlayResult played(std::string_view text, const std::string& machine, const PlayOptions& options = {}) {
  return price(read_graph("step", text), machine_named(machine), options);
}

// The time of a named algorithm, with the number of channels that suits it best.
Time priced(const std::string& machine, double bytes, const char* algorithm = "ring") {
  const Machine m = machine_named(machine);
  Time best = forever;
  for (const std::int32_t channels : {1, 2, 4}) {
    const schedule::Request request{.dims = {m.ranks()}, .channels = channels};
    best = std::min(best, price(schedule::algorithm_named(algorithm), request, m, {.bytes = bytes}).time);
  }
  return best;
}

TEST(Workload, AWayGoesAsItSays) {
  const Machine m = machine_named("torus:4x4");
  const schedule::Request request{.dims = {4, 4}, .channels = 2, .order = {1, 0}};
  const PlayResult p = played("ranks 16\nall_reduce a 1MiB by torus@4x4^1.0*2\n", "torus:4x4");
  EXPECT_EQ(p.time, price(schedule::algorithm_named("torus"), request, m, {.bytes = 1 << 20}).time);
  EXPECT_EQ(p.parts[0].algorithm, "torus dims=4x4 order=(1,0) channels=2");
  EXPECT_NE(why([] { played("ranks 16\nall_reduce a 1MiB by torus@3x4\n", "torus:4x4"); }), "");
}

TEST(Workload, WhatIsStoppedHasNoTime) {
  const auto stop = [](Time, double) { return true; };
  const std::string step = "ranks 64\nall_reduce a 1GiB by ring*4\nall_reduce b 1GiB by kangaring stream other\n";
  EXPECT_EQ(played(step, "trn2.48xlarge", {.stopped = stop}).time, forever);
}

TEST(Workload, TimesThatAreNotCountedAreRefused) {
  const auto refused = [](const char* text, const char* machine) { return why([&] { played(text, machine); }); };
  EXPECT_TRUE(refused("ranks 2\ncompute a 2000EFLOP\nall_reduce b 1MB after a\n", "trn2.3xlarge")
                  .ends_with(" days: expected at most 50"));
  EXPECT_EQ(refused("ranks 4\nall_reduce b 1000000000000GB\n", "ring:4"), "1e+21 B to move: expected at most 1e+20");
  EXPECT_TRUE(refused("ranks 4\nall_reduce b 10000000000GB\n", "ring:4").ends_with(" days: expected at most 50"));
  std::string days = "ranks 2\n";
  for (int i = 0; i < 5; ++i) days += "compute a" + std::to_string(i) + " 1000000s\n";
  EXPECT_EQ(refused(days.c_str(), "ring:2"), "a time of 57.87 days: expected at most 50");
}

// The computation is delayed by more than 9.2 s: comparing that with a millionth of the time must not overflow.
TEST(Workload, LongDelaysGrowWithWhatIsComputed) {
  const Time one = played("ranks 4\ncompute a 200GB\nall_reduce b 10GB by ring\n", "trn2.3xlarge").time;
  const Time many = played("ranks 4\ncompute a 200000GB\nall_reduce b 10000GB by ring\n", "trn2.3xlarge").time;
  EXPECT_NEAR(in_seconds(many), 1000 * in_seconds(one), 1e-3 * in_seconds(many));
}

TEST(Workload, RanksThatDoTheSameAreOneCell) {
  const Workload all = workload_of(read_graph("step", "ranks 1000\ncompute a 1us\nall_reduce b 1MB after a\n"));
  EXPECT_EQ(all.cells.size(), 1U);
  EXPECT_EQ(all.parts.size(), 2U);
  EXPECT_EQ(all.parts[1].after, std::vector<std::uint32_t>{0});
  const Workload rows =
      workload_of(read_graph("step", "ranks 8\ngroup tp 0-3 4-7\ncompute a 1us\nall_reduce b 1MB on tp after a\n"));
  EXPECT_EQ(rows.cells.size(), 2U);
  EXPECT_EQ(rows.parts.size(), 4U);
  EXPECT_EQ(rows.parts[3].members, (std::vector<Rank>{4, 5, 6, 7}));
  const Workload grid = workload_of(read_graph(
      "step",
      "ranks 8\ngroup tp 0-3 4-7\ngroup dp 0,4 1,5 2-6:4 3-7:4\nall_reduce a 1MB on tp\nall_reduce b 1MB on dp\n"));
  EXPECT_EQ(grid.cells.size(), 8U);
  EXPECT_EQ(grid.parts[4].members, (std::vector<Rank>{2, 6}));
  EXPECT_EQ(grid.parts[4].after, (std::vector<std::uint32_t>{0, 1})) << "the stream comm goes in order";
}

TEST(Workload, FaultsNameTheLineAndTheValue) {
  const std::pair<const char*, const char*> faults[] = {
      {"", "step: expected a line 'ranks N'"},
      {"compute a 1us", "step, line 1: 'compute': expected 'ranks N' first"},
      {"ranks 0", "step, line 1: '0' as a number of ranks: expected 1 to 2097151"},
      {"ranks 4\n\nranks 4", "step, line 3: 'ranks' a second time"},
      {"ranks 4\ncompute a",
       "step, line 2: compute a: expected a time, or FLOPs and bytes, as in 120us or 1.2TFLOP 300MB"},
      {"ranks 4\ncompute a 12parsec",
       "step, line 2: '12parsec': expected a time, FLOPs or bytes, as in 120us, 1.2TFLOP or 300MB"},
      {"ranks 4\ncompute a 1XFLOP",
       "step, line 2: '1XFLOP': expected a time, FLOPs or bytes, as in 120us, 1.2TFLOP or 300MB"},
      {"ranks 4\ncompute a 10us 20us", "step, line 2: '20us': a second time"},
      {"ranks 4\ncompute a 1FLOP 2FLOP", "step, line 2: '2FLOP': a second number of FLOPs"},
      {"ranks 4\ncompute a 1GB 1us 2GB", "step, line 2: '2GB': a second number of bytes"},
      {"ranks 4\ncompute a 1us by ring", "step, line 2: 'by': expected on, after or stream"},
      {"ranks 4\ncompute a 1us\ncompute a 1us", "step, line 3: 'a' is the name of an earlier task"},
      {"ranks 4\ncompute a 1us after b", "step, line 2: after 'b': expected the names of earlier tasks"},
      {"ranks 4\ncompute a 1us on 0-4", "step, line 2: '4' as a rank: expected 0 to 3"},
      {"ranks 4\ncompute a 1us on tp", "step, line 2: 'tp': expected a group () or ranks, as in 0-3"},
      {"ranks 4\ncompute a 1us on 3-0", "step, line 2: '3-0': expected the lower rank first"},
      {"ranks 4\ncompute a 1us on 0,0", "step, line 2: rank 0 stands twice in a group, or in two of one name"},
      {"ranks 4\ncompute a 1us on 0-3:0", "step, line 2: '0-3:0': expected a distance of at least 1"},
      {"ranks 4\nall_reduce a", "step, line 2: all_reduce a: expected bytes, as in 64MB"},
      {"ranks 4\nall_reduce a 3us", "step, line 2: '3us': expected bytes, as in 64MB or 8KiB"},
      {"ranks 4\nall_reduce a 3MB root 1", "step, line 2: 'root': all_reduce has none"},
      {"ranks 4\nbroadcast a 3MB on 0-1 root 2", "step, line 2: root 2 of a group of 2"},
      {"ranks 4\nsend_recv a 3MB", "step, line 2: send_recv a: expected BYTES from RANK to RANK"},
      {"ranks 4\nsend_recv a 3MB from 1 to 1", "step, line 2: send_recv from 1 to itself"},
      {"ranks 4\ncompute a 1us on 0\ncompute b 1us on 1 after a",
       "step, line 3: 'b' waits for 'a', in which none of its ranks takes part"}};
  for (const auto& [text, message] : faults) EXPECT_EQ(fault_of(text), message);
}

TEST(Play, ComputationAndCollectivesFollowEachOther) {
  const PlayResult p =
      played("ranks 8\ncompute a 10us\nall_reduce b 8MB by ring after a\ncompute c 5us after b\n", "ring:8");
  const Time took = priced("ring:8", 8e6);
  EXPECT_EQ(p.time, 15 * us + took);
  EXPECT_EQ(p.path, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(p.exposed_most, took);
  EXPECT_TRUE(p.parts[1].algorithm.starts_with("ring")) << p.parts[1].algorithm;
}

TEST(Play, CommunicationHidesBehindComputation) {
  const PlayResult p =
      played("ranks 8\ncompute a 10us\nall_reduce b 8MB by ring after a\ncompute c 5ms after a\n", "ring:8");
  EXPECT_EQ(p.time, 10 * us + 5 * ms);
  EXPECT_EQ(p.exposed_most, 0);
  EXPECT_EQ(p.cells[0].compute, p.time);
  EXPECT_EQ(p.path, (std::vector<std::uint32_t>{0, 2}));
}

TEST(Play, CollectivesAtOnceShareTheLinks) {
  const std::string two = "ranks 8\nall_reduce a 8GB by ring stream x\nall_reduce b 8GB by ring stream y\n";
  const Time alone = priced("ring:8", 8e9), both = played(two, "ring:8").time;
  EXPECT_NEAR(static_cast<double>(both), 2.0 * static_cast<double>(alone), 0.001 * static_cast<double>(alone));
  const std::string apart =
      "ranks 8\nall_reduce a 8GB on 0-3 by ring stream x\nall_reduce b 8GB on 4-7 by ring stream y\n";
  const PlayResult p = played(apart, "switch:8");
  EXPECT_EQ(p.time, priced("switch:4", 8e9)) << "each has its own links";
}

// A collective begins while another is under way: both are slowed for as long as they share, and no longer.
TEST(Play, ALateComerSharesTheRest) {
  const Time alone = priced("ring:8", 8e9);
  const Time start = alone / 2;
  const std::string text = "ranks 8\nall_reduce a 8GB by ring stream x\ncompute wait " + std::to_string(start) +
                           "ps stream y\nall_reduce b 8GB by ring stream y after wait\n";
  const PlayResult p = played(text, "ring:8");
  const auto near = [](Time time, double wanted) { EXPECT_NEAR(static_cast<double>(time), wanted, 0.01 * wanted); };
  near(p.parts[0].end, 1.5 * static_cast<double>(alone));
  near(p.time, 2.0 * static_cast<double>(alone));
  EXPECT_EQ(p.parts[2].start, start);
  EXPECT_GE(p.rounds, 2);
}

TEST(Play, EveryPartBeginsWhenTheLastThatItWaitsForEnds) {
  std::string text = "ranks 16\ngroup tp 0-3 4-7 8-11 12-15\ngroup dp 0-15:4 1-15:4 2-15:4 3-15:4\n";
  for (int layer = 0; layer < 4; ++layer) {
    const std::string l = std::to_string(layer);
    text += "compute bwd" + l + " " + std::to_string(50 + 10 * layer) + "us" +
            (layer > 0 ? " after tp" + std::to_string(layer - 1) : "") + "\nall_reduce tp" + l +
            " 4MB on tp after bwd" + l + "\nreduce_scatter dp" + l + " 64MB on dp stream data after bwd" + l + "\n";
  }
  const Workload workload = workload_of(read_graph("step", text));
  const PlayResult p = play(workload, machine_named("torus:4x4"));
  for (std::size_t i = 0; i < workload.parts.size(); ++i) {
    Time ready = 0;
    for (std::uint32_t before : workload.parts[i].after) ready = std::max(ready, p.parts[before].end);
    EXPECT_EQ(p.parts[i].start, ready);
    EXPECT_GT(p.parts[i].end, ready);
  }
  for (const PlayedTimeBreakdown& cell : p.cells) EXPECT_EQ(cell.compute + cell.exposed + cell.idle, p.time);
  for (std::size_t i = 1; i < p.path.size(); ++i) EXPECT_EQ(p.parts[p.path[i]].start, p.parts[p.path[i - 1]].end);
  const Timeline timeline = timeline_of(workload, p);
  EXPECT_EQ(timeline.end, p.time);
  Time on_path = 0;
  for (const CriticalPathPiece& piece : critical_path(timeline)) on_path += piece.end - piece.start;
  EXPECT_EQ(on_path, p.time);
}

TEST(Play, TakesTheBestAlgorithm) {
  const std::string text = "ranks 8\nall_reduce a 64MB\n";
  const Time best = played(text, "ring:8").time;
  for (const char* one : {"ring", "halving_doubling", "recursive_doubling"})
    EXPECT_LE(best, played(text, "ring:8", {.algorithm = one}).time);
}

// The named algorithm, ring, serves no messages, so the message goes as if no algorithm were named.
TEST(Play, TheNamedAlgorithmIsOfCollectivesAlone) {
  const PlayResult p =
      played("ranks 4\nsend_recv a 3MB from 1 to 2\nall_reduce b 1MB after a\n", "ring:4", {.algorithm = "ring"});
  EXPECT_EQ(p.parts[0].algorithm, "direct");
  EXPECT_TRUE(p.parts[1].algorithm.starts_with("ring"));
}

TEST(Play, ComputesAtTheChipsRates) {
  const std::string text = "ranks 64\ncompute a 1TFLOP\ncompute b 1GB after a\n";
  EXPECT_EQ(played(text, "trn2.48xlarge", {.flops = 100e12, .memory = 500e9}).time, 10 * ms + 2 * ms);
  EXPECT_GT(played(text, "trn2.48xlarge").time, 0);
  EXPECT_EQ(why([] { played("ranks 4\ncompute a 1TFLOP\n", "ring:4"); }),
            "a: ring:4 says nothing of FLOPs a second: state the rate, or the task's time");
}

// Where nothing says how long an operation takes, the step is refused: that it takes no time would be wrong.
TEST(Play, OperationsAreTimedByAChipsEnginesAlone) {
  const std::string text = "ranks 4\noperation mm product rows=4096 columns=4096 inner=4096\ncompute a mm*30";
  EXPECT_GT(played(text, "trn2.48xlarge").time, ms);
  EXPECT_EQ(
      why([&] { played(text, "torus:4"); }),
      "a: its operations are timed by the engines of a chip: torus:4 has none, and its FLOPs and bytes are not given");
  for (const PlayOptions& rates : {PlayOptions{.flops = 1e12}, PlayOptions{.memory = 1e9}}) {
    EXPECT_EQ(why([&] { played(text, "trn2.48xlarge", rates); }),
              "a: its operations are timed by the engines of a chip: rates are stated instead, and its FLOPs and bytes "
              "are not given");
    EXPECT_NE(why([&] { played(text, "torus:4", rates); }), "");
  }
  EXPECT_EQ(played(text + " 30TFLOP", "torus:4", {.flops = 1e12}).time, 30 * second);
}

TEST(Play, AStragglerHoldsUpItsGroup) {
  MachineSpec spec = machine_spec("ring:4");
  what_if(spec, "straggler:2:0.5");
  const Workload workload =
      workload_of(read_graph("step", "ranks 4\ngroup tp 0-1 2-3\ncompute a 10us\nbarrier b on tp after a\n"));
  const PlayResult p = play(workload, Machine(spec));
  EXPECT_EQ(p.parts[0].end, 10 * us);
  EXPECT_EQ(p.parts[1].end, 20 * us);
}

TEST(Play, AScheduleFromOutsideRunsAsItIs) {
  Workload workload = workload_of(read_graph("step", "ranks 4\nall_reduce a 4MB\n"));
  workload.parts[0].schedule =
      std::make_shared<schedule::Schedule>(schedule::make("ring", schedule::Request{.dims = {4}}));
  const Machine ring = machine_named("ring:4");
  EXPECT_EQ(play(workload, ring).time, price(*workload.parts[0].schedule, ring, {.bytes = 4e6}).time);
  workload.parts[0].schedule =
      std::make_shared<schedule::Schedule>(schedule::make("ring", schedule::Request{.dims = {3}}));
  EXPECT_EQ(why([&] { play(workload, machine_named("ring:4")); }), "a: a schedule for 3 ranks among 4");
}

TEST(Play, RefusesWhatDoesNotFit) {
  EXPECT_EQ(why([] { played("ranks 8\ncompute a 1us\n", "ring:4"); }), "step is for 8 ranks: ring:4 has 4");
  EXPECT_NE(why([] { played("ranks 4\nall_reduce a 1MB by nothing\n", "ring:4"); }).find("'nothing'"),
            std::string::npos);
}

TEST(Play, NoiseIsOfTheSeedAndOtherForEachCollective) {
  const std::string step = "ranks 64\nall_reduce a 64KiB by rdh\nall_reduce b 64KiB by rdh after a\n";
  const PlayResult quiet = played(step, "trn2.48xlarge");
  const auto took = [](const PlayResult& p, std::size_t part) { return p.parts[part].end - p.parts[part].start; };
  EXPECT_EQ(took(quiet, 0), took(quiet, 1));
  std::set<Time> times;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const PlayResult noisy = played(step, "trn2.48xlarge", {.noise = seed});
    times.insert(noisy.time);
    EXPECT_GT(took(noisy, 0), took(quiet, 0)) << seed;
    EXPECT_NE(took(noisy, 0), took(noisy, 1)) << seed;
    EXPECT_EQ(noisy.time, played(step, "trn2.48xlarge", {.noise = seed}).time);
  }
  EXPECT_EQ(times.size(), 8U);
}

// A step of many chips that all do the same is folded to one.
TEST(Play, ManyChipsThatAreAlikeCostLittle) {
  const PlayResult p = played("ranks 110592\ncompute a 1ms\nall_reduce b 1GB after a by torus\n", "torus:48x48x48");
  EXPECT_EQ(p.cells.size(), 1U);
  EXPECT_GT(p.time, ms);
}

// A task that needs little bandwidth gets all that it needs; the computation at full rate slows down.
TEST(Play, ComputationAndCollectivesShareMemory) {
  const std::string machine = "trn2.48xlarge";
  const PlayResult compute = played("ranks 64\ncompute a 3GB\n", machine);
  const PlayResult sum = played("ranks 64\nall_reduce b 256MB by ring\n", machine);
  const PlayResult both = played("ranks 64\ncompute a 3GB\nall_reduce b 256MB by ring\n", machine);
  EXPECT_GT(both.parts[0].end, compute.parts[0].end);
  EXPECT_GE(both.parts[1].end, sum.parts[0].end);
  EXPECT_LT(both.time, compute.time + sum.time);
  // A task that is bound by computation leaves memory bandwidth to others; its own time stays as it is, to the
  // picosecond.
  const PlayResult slow = played("ranks 64\ncompute a 100ms 3GB\nall_reduce b 256MB by ring\n", machine);
  EXPECT_EQ(slow.parts[0].end, 100 * ms);
}

// What reads memory waits for the slowest of its ranks' memory, whichever rank's that is, and whatever runs beside it.
TEST(Play, SlowMemorySlowsWhatReadsIt) {
  const std::string operation = "operation up adamw rows=8192 columns=8192 type=f32\n";
  const auto took = [&](const std::string& tasks, const char* change, const PlayOptions& options = {}) {
    MachineSpec spec = machine_spec("trn2.48xlarge");
    if (*change != 0) what_if(spec, change);
    return price(read_graph("step", "ranks 64\n" + operation + tasks), Machine(spec), options).parts[0].end;
  };
  const auto near = [](Time time, double wanted) { EXPECT_NEAR(static_cast<double>(time), wanted, 0.01 * wanted); };
  for (const char* tasks : {"compute a 3GB\n", "compute a up\n", "compute a 3GB\nall_reduce b 64MB by ring\n"}) {
    const auto usual = static_cast<double>(took(tasks, ""));
    EXPECT_EQ(took(tasks, "hbm:0:0.1"), took(tasks, "hbm:63:0.1")) << tasks;
    if (std::string_view(tasks).find("all_reduce") == std::string_view::npos)
      near(took(tasks, "hbm:63:0.1"), 10 * usual);
    EXPECT_GT(static_cast<double>(took(tasks, "hbm:0:0.1")), 8 * usual) << tasks;
  }
  near(took("compute a 3GB\n", "hbm:63:0.1", {.memory = 1e11}), 0.3e12);
  EXPECT_EQ(took("compute a 1TFLOP\n", "hbm:0:0.1"), took("compute a 1TFLOP\n", ""));
  EXPECT_EQ(took("compute a 3GB on 0-31\n", "hbm:63:0.1"), took("compute a 3GB on 0-31\n", ""));
}

TEST(Play, CollectivesAtOnceSlowEachOther) {
  const std::string group = "ranks 64\ngroup tp 0-3 4-7 8-11 12-15\n";
  const PlayResult one = played(group + "all_reduce a 64MB on tp by ring\n", "trn2.48xlarge");
  const PlayResult two =
      played(group + "all_reduce a 64MB on tp by ring\nall_reduce b 64MB by ring stream data\n", "trn2.48xlarge");
  EXPECT_GT(two.parts[0].end, one.parts[0].end);
}

}  // namespace
}  // namespace trellis::sim
