#include "sim/cluster/price/price.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>

#include "schedule/schedule_too_large.h"
#include "sim/cluster/choose/algorithm_choice.h"
#include "sim/cluster/machine/launch_mode.h"
#include "sim/cluster/price/uncertainty_interval.h"

namespace trellis::sim {
namespace {

using schedule::Collective;
using schedule::Request;

constexpr double rate = 50e9;  // of the links of plain shapes
constexpr Time latency = 500 * ns;

Price priced(const char* algorithm, const Request& request, const Machine& m, PriceOptions options) {
  return price(schedule::algorithm_named(algorithm), request, m, options);
}

TEST(Price, RingIsItsClosedForm) {
  for (Rank n : {2, 3, 8, 64, 100}) {
    const Machine m = machine_named("ring:" + std::to_string(n));
    const double chunk = 1 << 20;
    const Price p = priced("ring", {.operation = {.in_place = true}, .dims = {n}}, m, {.bytes = chunk * n});
    EXPECT_EQ(p.time, 2 * (n - 1) * (latency + transfer_time(chunk, rate))) << n;
  }
}

TEST(Price, HalvingDoublingIsItsClosedForm) {
  for (Rank n : {2, 4, 8, 16, 32}) {
    const Machine m = machine_named("full:" + std::to_string(n));
    const double bytes = 1 << 25;
    Time expected = 0;
    for (Rank part = 2; part <= n; part *= 2) expected += 2 * (latency + transfer_time(bytes / part, rate));
    EXPECT_EQ(priced("halving_doubling", {.operation = {.in_place = true}, .dims = {n}}, m, {.bytes = bytes}).time,
              expected)
        << n;
  }
}

// A rank sends to all its children at once. Where each pair has a link of its own, only the longest chain counts: each
// level halves the ranks below. Where all that a rank sends shares its uplink, a rank with k children sends to each at
// a kth of the rate, and the longest chain goes through the ranks with most children.
TEST(Price, TreeIsItsClosedForm) {
  constexpr double bytes = 1e6;
  for (Rank n : {2, 3, 4, 7, 8, 16, 21, 64, 100}) {
    const Machine m = machine_named("full:" + std::to_string(n));
    const Request request{.operation = {.collective = Collective::broadcast, .in_place = true}, .dims = {n}};
    const int levels = std::bit_width(static_cast<std::uint32_t>(n)) - 1;
    EXPECT_EQ(priced("binomial", request, m, {.bytes = bytes}).time, levels * (latency + transfer_time(bytes, rate)))
        << n;
  }
  for (Rank n : {2, 4, 8, 32, 128}) {
    const Machine m = machine_named("switch:" + std::to_string(n));
    const Request request{.operation = {.collective = Collective::broadcast, .in_place = true}, .dims = {n}};
    std::vector<ResourceId> config;
    m.route(0, 1, config);
    Time expected = 0;
    for (int children = std::bit_width(static_cast<std::uint32_t>(n)) - 1; children > 0; --children) {
      const auto part = static_cast<Work>(rate_of(rate) / children), work = static_cast<Work>(bytes) * work_of_byte;
      expected += static_cast<Time>((work + part - 1) / part);
      for (ResourceId r : config) expected += m.latency(r);
    }
    EXPECT_EQ(priced("binomial", request, m, {.bytes = bytes}).time, expected) << n;
  }
}

// Parts of one message follow each other: a rank sends on the first while it receives the second.
TEST(Price, AChainOfPartsIsItsClosedForm) {
  constexpr double part = 1 << 16;
  for (Rank n : {2, 3, 8, 16})
    for (int parts : {1, 4, 64}) {
      const Machine m = machine_named("ring:" + std::to_string(n));
      const Request request{
          .operation = {.collective = Collective::broadcast, .in_place = true}, .dims = {n}, .segments = parts};
      const Time one = transfer_time(part, rate);
      EXPECT_EQ(priced("ring", request, m, {.bytes = part * parts}).time, (n - 1) * (latency + one) + (parts - 1) * one)
          << n << " ranks, " << parts << " parts";
    }
}

// Folded and unfolded prices agree to the picosecond, wherever something folds.
TEST(Price, FoldedIsUnfolded) {
  int folded = 0;
  for (const char* name : {"ring:8", "torus:4x4", "torus:4x2x3", "torus:4x4x4", "switch:8", "full:8",
                           "cores:4/torus:2x2", "clos:64", "trn2.48xlarge", "trn1.32xlarge x 2", "trn2u"}) {
    const Machine m = machine_named(name);
    for (Collective c :
         {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all})
      for (const auto& [algorithm_name, algorithm] : schedule::algorithms()) {
        const auto dims = usual_dims(algorithm_name, m, m.ranks());
        const Request request{.operation = {.collective = c}, .dims = dims};
        if (!refusal(algorithm, request).empty() || m.ranks() > 64 * 2) continue;
        const CompiledSchedule pattern(algorithm, request);
        const Price one = price(pattern, m, {.bytes = 12'345'678, .fold = true});
        const Price all = price(pattern, m, {.bytes = 12'345'678, .fold = false});
        EXPECT_EQ(one.time, all.time) << name << ' ' << schedule::name(c) << ' ' << algorithm_name;
        EXPECT_EQ(all.simulated, m.ranks());
        folded += one.simulated < m.ranks();
      }
  }
  EXPECT_GT(folded, 60);
}

// For some values of w.group, the chips that share an interface lie in two leaves of eight. Ranks are then not all
// alike, but the folded price must still be the unfolded one.
TEST(Price, FoldedIsUnfoldedWhereAnInterfaceSpansTwoLeaves) {
  for (int group = 1; group <= 8; ++group) {
    const Machine m(read_machine(
        "net", fmt::format("level clos w 16\nw.rate = 50 GB/s | documented | x\nw.latency = 1 us | documented | x\n"
                           "w.group = {} | documented | x\nw.radix = 8 | documented | x\n"
                           "w.oversubscription = 2 | documented | x\n",
                           group)));
    const CompiledSchedule pattern(schedule::algorithm_named("bruck"),
                                   {.operation = {.collective = Collective::all_to_all}, .dims = {16}});
    EXPECT_EQ(price(pattern, m, {.bytes = 64e6, .fold = true}).time,
              price(pattern, m, {.bytes = 64e6, .fold = false}).time)
        << group;
  }
}

// If direct gets the torus's own dimensions, all ranks do the same, and one is simulated.
TEST(Price, ADirectExchangeAlongATorusIsSimulatedByOneRank) {
  for (const char* name : {"torus:4x4", "torus:4x2x3", "torus:4x4x4"}) {
    const Machine m = machine_named(name);
    for (Collective c :
         {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
      const CompiledSchedule pattern(schedule::algorithm_named("direct"),
                                     {.operation = {.collective = c}, .dims = m.dims()});
      const Price one = price(pattern, m, {.bytes = 12'345'678});
      EXPECT_EQ(one.simulated, 1) << name << ' ' << schedule::name(c);
      EXPECT_EQ(one.time, price(pattern, m, {.bytes = 12'345'678, .fold = false}).time) << name;
    }
  }
  EXPECT_EQ(usual_dims("direct", machine_named("torus:16x16x8"), 2048), (std::vector<Rank>{16, 16, 8}));
  EXPECT_EQ(usual_dims("direct", machine_named("torus:4x4"), 16), (std::vector<Rank>{16}));
}

// The exchange's 992 transfers and 32 copies need 60 KB. If it folds, only one rank's are held, and less is enough.
TEST(Price, AnExchangeThatDoesNotFitInMemoryIsRefusedAtOnce) {
  const Machine m = machine_named("torus:4x8");
  for (const auto& [name, advice] : {std::pair("direct", "it folded, fewer ranks"), {"pairwise", "fewer ranks"}}) {
    const CompiledSchedule pattern(schedule::algorithm_named(name),
                                   {.operation = {.collective = Collective::all_to_all}, .dims = {4, 8}});
    const auto time = [&](bool fold, std::uint64_t most_memory) {
      return sim::SimulationRun(m, {{.pattern = &pattern, .bytes = 1 << 20}},
                                {.fold = fold, .most_memory = most_memory})
          .run();
    };
    EXPECT_EQ(time(true, std::string(name) == "direct" ? 20'000 : 100'000), time(false, 100'000)) << name;
    try {
      time(false, 20'000);
      FAIL() << name;
    } catch (const schedule::ScheduleTooLarge& e) {
      const std::string said = e.what();
      EXPECT_TRUE(said.starts_with("1024 moves of 32 simulated ranks need at least ")) << said;
      EXPECT_TRUE(
          said.ends_with(fmt::format("GB of memory, and 2e-05 GB are available: try {}, or an algorithm of "
                                     "fewer messages such as bruck",
                                     advice)))
          << said;
    }
  }
}

TEST(Price, ASumWaitsForAllArrivals) {
  const Machine m = machine_named("ring:300");
  const CompiledSchedule pattern(schedule::algorithm_named("direct"),
                                 {.operation = {.collective = Collective::reduce}, .dims = {300}});
  sim::SimulationRun run(m, {{.pattern = &pattern, .bytes = 1 << 20}}, {.trace = true});
  run.run();
  Time arrived = 0, summed = 0;
  for (std::int64_t i = 0; i < std::ssize(run.traces()); ++i) {
    const MoveTrace& trace = run.traces()[static_cast<std::size_t>(i)];
    if (run.place(i).peer >= 0)
      arrived = std::max(arrived, trace.end + run.latency(i));
    else
      summed = std::max(summed, trace.begin);
  }
  EXPECT_EQ(run.transfers(), 299);
  EXPECT_EQ(summed, arrived);
}

// The operations of a collective whose bounds differ: with the root at the edge and in the middle, and between ranks
// that are near each other.
std::vector<schedule::CollectiveOperation> operations(Collective c, Rank ranks) {
  if (c == Collective::permute) return {{.collective = c, .pairs = {{0, 1}, {1, 0}}}};
  if (c == Collective::send_recv) return {{.collective = c, .root = ranks - 1, .peer = ranks - 2}};
  if (!schedule::rooted(c)) return {{.collective = c}};
  return {{.collective = c}, {.collective = c, .root = ranks / 2}};
}

void expect_nothing_beats_the_bounds(const Machine& m) {
  for (const auto& [name, algorithm] : schedule::algorithms())
    for (Collective c : schedule::collectives())
      for (const schedule::CollectiveOperation& operation : operations(c, m.ranks())) {
        const Request request{.operation = operation, .dims = usual_dims(name, m, m.ranks())};
        if (!refusal(algorithm, request).empty()) continue;
        const CompiledSchedule pattern(algorithm, request);
        for (const double bytes : {8.0, 60.0 * (1 << 20)}) {
          const Price p = price(pattern, m, {.bytes = bytes});
          EXPECT_GE(p.time, p.bounds.most())
              << m.name() << ' ' << schedule::name(c) << " from " << operation.root << ' ' << name << ' ' << bytes;
        }
      }
}

TEST(Price, NothingBeatsTheBounds) {
  for (const char* name :
       {"ring:8",          "torus:4x4",      "switch:8", "full:8",      "trn2.48xlarge",   "trn1.32xlarge x 2",
        "ring:3",          "ring:5",         "full:3",   "full:7",      "mesh:3",          "mesh:5",
        "torus:3x3",       "torus:2x3",      "switch:3", "fattree:2x3", "dragonfly:2x1x3", "cores:2/ring:3",
        "ring:3/switch:3", "switch:2/ring:3"})
    expect_nothing_beats_the_bounds(machine_named(name));
  // The last leaf is not full, and a leaf's uplinks carry only an eighth of what its units can send.
  MachineSpec clos = machine_spec("clos:10");
  for (const char* change : {"clos.radix=8", "clos.oversubscription=8"}) what_if(clos, change);
  expect_nothing_beats_the_bounds(Machine(std::move(clos)));
  expect_nothing_beats_the_bounds(Machine(read_machine("m", R"(level links g 3
g.rate = 50 GB/s | documented | x
g.latency = 500 ns | documented | x
g.join.0.1 = 1 | documented | x
g.join.0.2 = 2 | documented | x
)")));
}

TEST(Price, LatencyBoundsTransfersBetweenTheRanksThatNeedThem) {
  const Machine m = machine_named("ring:64");
  const auto bound = [&](schedule::CollectiveOperation o) {
    return lower_bounds({.operation = std::move(o), .ranks = 64}, m, {.bytes = 8}).latency;
  };
  EXPECT_EQ(bound({.collective = Collective::send_recv, .root = 0, .peer = 1}), latency);
  EXPECT_EQ(bound({.collective = Collective::send_recv, .root = 10, .peer = 40}), 30 * latency);
  EXPECT_EQ(bound({.collective = Collective::permute, .pairs = {{0, 0}}}), 0);
  EXPECT_EQ(bound({.collective = Collective::permute, .pairs = {{0, 1}, {20, 23}}}), 3 * latency);
  EXPECT_EQ(bound({.collective = Collective::all_reduce}), 32 * latency);
}

TEST(Price, OneRankStandsForOthersWhereNothingTellsThemApart) {
  const Machine machine = machine_named("ring:8");
  const CompiledSchedule pattern(schedule::algorithm_named("ring"),
                                 {.operation = {.collective = Collective::all_reduce}, .dims = {8}});
  const auto part = [&](const Machine& m, const PriceOptions& options) {
    const auto folded = folded_ranks(pattern.symmetry(), m, options);
    const double gone_through = moves_gone_through(pattern, m, options);
    EXPECT_EQ(gone_through * 8, static_cast<double>(pattern.moves() * (folded ? std::ssize(*folded) : 8)));
    return folded.has_value();
  };
  EXPECT_TRUE(part(machine, {}));
  EXPECT_FALSE(part(machine, {.fold = false}));
  EXPECT_FALSE(part(machine, {.noise = 1}));
  EXPECT_TRUE(part(machine, {.members = {0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_FALSE(part(machine, {.members = {0, 1, 3, 2, 4, 5, 6, 7}}));
  EXPECT_FALSE(part(machine_named("ring:16"), {}));
  MachineSpec slow = machine.spec();
  what_if(slow, "slow:0-1:0.5");
  EXPECT_FALSE(part(Machine(slow), {}));
}

TEST(Price, ASlowLinkCostsTimeAndUnfolds) {
  MachineSpec spec = machine_spec("torus:4x4");
  const Request request{.operation = {.in_place = true}, .dims = {4, 4}};
  const Price well = priced("torus", request, Machine(spec), {.bytes = 1 << 26});
  what_if(spec, "slow:0-1:0.5");
  const Price ill = priced("torus", request, Machine(spec), {.bytes = 1 << 26});
  EXPECT_GT(ill.time, well.time);
  EXPECT_EQ(well.simulated, 1);
  EXPECT_EQ(ill.simulated, 16);
  EXPECT_EQ(ill.busiest_name, "torus x+ of chip 0");
}

// The run must end with its last transfer, and not at an end that was predicted while a transfer still shared its
// links.
TEST(Price, ARunEndsWhenTheLastTransferHasArrived) {
  MachineSpec spec = machine_spec("ring:64");
  what_if(spec, "slow:3-4:0.5");
  const Machine m(spec);
  const CompiledSchedule pattern(schedule::algorithm_named("ring"), {.operation = {.in_place = true}, .dims = {64}});
  sim::SimulationRun run(m, {{.pattern = &pattern, .bytes = 1 << 26}}, {.trace = true});
  const Time end = run.run();
  Time last = 0;
  for (std::int64_t i = 0; i < std::ssize(run.traces()); ++i)
    last = std::max(last, run.traces()[static_cast<std::size_t>(i)].end + run.latency(i));
  EXPECT_EQ(end, last);
}

TEST(Price, TheCriticalPathAddsUp) {
  const Machine m = machine_named("trn2.48xlarge");
  const Price p = priced("rdh", {.dims = {4, 4, 4}}, m, {.bytes = 1 << 24, .explain = true});
  Time sum = 0;
  for (const CriticalPathLeg& leg : p.path) sum += leg.time;
  EXPECT_EQ(sum, p.time);
  EXPECT_NE(path_in_words(p, m).find("moving bytes over"), std::string::npos);
}

TEST(Price, AnIntervalHoldsItsMiddle) {
  const MachineSpec spec = machine_spec("trn2.48xlarge");
  const CompiledSchedule pattern(schedule::algorithm_named("rdh"), {.dims = {4, 4, 4}});
  const PriceOptions options{.bytes = 1 << 24};
  const Time middle = price(pattern, Machine(spec), options).time;
  const UncertaintyInterval i = interval(pattern, spec, options, middle);
  EXPECT_LT(i.low, middle);
  EXPECT_GT(i.high, middle);
  ASSERT_FALSE(i.sensitivities.empty());
  EXPECT_GE(i.sensitivities.front().width(), i.sensitivities.back().width());
}

// interval() skips figures that only change when the collective starts, or that do not matter on this machine.
TEST(Price, AnIntervalIsThatOfPricingEveryFigure) {
  for (const auto& [name, collective, algorithm] :
       {std::tuple("trn2.3xlarge x 2", schedule::Collective::all_reduce, "ring"),
        {"trn2.48xlarge x 2", schedule::Collective::all_to_all, "pairwise"},
        {"trn2.3xlarge x 3", schedule::Collective::all_gather_v, "ring"}}) {
    const MachineSpec spec = machine_spec(name);
    const Machine machine(spec);
    const CompiledSchedule pattern(schedule::algorithm_named(algorithm),
                                   {.operation = {.collective = collective}, .dims = {machine.ranks()}});
    const PriceOptions options{.bytes = 1e6};
    const Time middle = price(pattern, machine, options).time;
    const UncertaintyInterval one = interval(pattern, spec, options, middle);
    const UncertaintyInterval all =
        interval(spec, "", middle, [&](const Machine& other) { return price(pattern, other, options).time; });
    EXPECT_EQ(one.low, all.low) << name;
    EXPECT_EQ(one.high, all.high) << name;
    ASSERT_EQ(one.sensitivities.size(), all.sensitivities.size()) << name;
    for (std::size_t i = 0; i < one.sensitivities.size(); ++i) {
      EXPECT_EQ(one.sensitivities[i].figure, all.sensitivities[i].figure) << name;
      EXPECT_EQ(one.sensitivities[i].low, all.sensitivities[i].low) << name << " " << one.sensitivities[i].figure;
      EXPECT_EQ(one.sensitivities[i].high, all.sensitivities[i].high) << name << " " << one.sensitivities[i].figure;
    }
  }
}

// A figure whose fit misses its records by more has a wider range.
TEST(Price, AFittedFigureIsAsSureAsItsResidual) {
  MachineSpec spec = machine_spec("ring:4");
  const auto low = [&](const char* mark) {
    std::string text = spec.figures.text();
    const std::size_t at = text.find("ring.rate = ");
    text.replace(at, text.find('\n', at) - at, fmt::format("ring.rate = 50 GB/s | fitted {} | so", mark));
    MachineSpec other = spec;
    other.figures = Figures::read(text);
    EXPECT_EQ(Figures::read(other.figures.text()).text(), other.figures.text());
    const CompiledSchedule pattern(schedule::algorithm_named("ring"), {.dims = {4}});
    const PriceOptions options{.bytes = 1e8};
    return interval(pattern, other, options, price(pattern, Machine(other), options).time).low;
  };
  EXPECT_LT(low("30% a.record"), low("a.record"));
  EXPECT_LT(low("a.record"), low("4% a.record"));
  for (const char* wrong : {"0% a.record", "100% a.record", "x% a.record", "4%"})
    EXPECT_THROW(Figures::read(fmt::format("a = 1 | fitted {} | so", wrong)), std::invalid_argument) << wrong;
}

// The runtime's documentation says where it changes its algorithm: mesh below about 1 MB, rdh to about 56 MB, then
// kangaring. The simulated change to kangaring comes at 7 MB: rdh is at first as fast, and then takes up to half as
// much time again.
TEST(Price, ArrivesAtThePublishedRegionsOrNearby) {
  const Machine m = machine_named("trn2.48xlarge");
  const auto least = [&](const char* algorithm, double bytes) {
    Time time = forever;
    for (std::int32_t channels : {1, 2, 4}) {
      const Request request{.dims = usual_dims(algorithm, m, 64), .channels = channels};
      time = std::min(time, priced(algorithm, request, m, {.bytes = bytes}).time);
    }
    return time;
  };
  const auto best = [&](double bytes) {
    return std::ranges::min({"mesh", "rdh", "kangaring"}, {}, [&](const char* a) { return least(a, bytes); });
  };
  for (double bytes : {4096.0, 65536.0, 400e3}) EXPECT_STREQ(best(bytes), "mesh") << bytes;
  for (double bytes : {2e6, 4e6}) EXPECT_STREQ(best(bytes), "rdh") << bytes;
  EXPECT_TRUE(is_draw(m, "", least("rdh", 12e6), least("kangaring", 12e6)));
  for (double bytes : {24e6, 48e6})
    EXPECT_LT(in_seconds(least("rdh", bytes)), 1.5 * in_seconds(least("kangaring", bytes))) << bytes;
  EXPECT_FALSE(is_draw(m, "", least("mesh", 4096), least("kangaring", 4096)));
  for (double bytes : {112e6, 512e6}) EXPECT_STREQ(best(bytes), "kangaring") << bytes;
}

// 256 ranks send to all others over one host's links: thousands of flows whose rates change whenever one ends. Such
// prices are approximate, and say so.
TEST(Price, SaysWhereCrowdsArePricedNearly) {
  const Machine m = machine_named("trn2u");
  EXPECT_FALSE(priced("mesh", {.dims = {256}}, m, {.bytes = 1 << 20}).exact);
  EXPECT_TRUE(priced("mesh", {.dims = {4, 64}}, m, {.bytes = 1 << 10}).exact);
  EXPECT_TRUE(priced("rdh", {.dims = {4, 4, 4, 4}}, m, {.bytes = 1 << 20}).exact);
}

}  // namespace
}  // namespace trellis::sim
