// sim::answer against its parts called directly: the choice, the price, the interval, runs with noise.
#include "sim/cluster/answer/collective_answer.h"

#include <gtest/gtest.h>

#include <atomic>

#include "sim/cluster/answer/workload_answer.h"
#include "sim/cluster/machine/machine.h"

namespace trellis::sim {
namespace {

CollectiveQuestion all_reduce_on(const PricingSession& priced, double bytes) {
  return {.settings = {}, .group = first_in_a_row(priced.machine(), 0), .bytes = bytes};
}

// Asks to stop at the poll with this number, and notes the names of the tasks.
class StopsAt final : public ProgressMonitor {
 public:
  explicit StopsAt(int last) : left_(last) {}
  void begin(std::string task) override { tasks.push_back(std::move(task)); }
  bool stopped(Time, double) override { return --left_ < 0; }
  bool interrupted() const override { return left_ < 0; }
  std::vector<std::string> tasks;

 private:
  std::atomic<int> left_;
};

TEST(CollectiveAnswer, IsTheChoiceAndItsPriceWithItsInterval) {
  PricingSession priced(machine_spec("trn2.48xlarge"));
  const CollectiveQuestion q = all_reduce_on(priced, 1 << 20);
  const CollectiveAnswer a = answer(q, priced);
  Pricer pricer(priced.machine(), q.group, {});
  const AlgorithmChoice choice = choose(pricer, usual_configs(pricer, q.bytes), q.bytes, {.within = usual_within});
  EXPECT_EQ(a.config, choice.best.front().config);
  EXPECT_EQ(a.price.time, pricer.price(a.config, q.bytes).time);
  EXPECT_LT(a.interval.low, a.price.time);
  EXPECT_GT(a.interval.high, a.price.time);
  EXPECT_TRUE(a.interrupted.empty());
  EXPECT_TRUE(a.phases.empty() && a.carried.empty() && !a.seen);
}

// Cases whose ranges would reach below zero. Either several figures each take most of the time away, so that the root
// of their squares' sum exceeds the time; or a collective that is launched another way takes less time than the
// uncertainty of the usual launch's figures.
TEST(CollectiveAnswer, NoTimeIsBelowZero) {
  struct Case {
    const char *machine, *algorithm;
    schedule::Collective collective;
    double bytes;
    std::vector<const char*> changes;
  };
  for (const Case& c :
       {Case{"clos:64",
             "direct",
             schedule::Collective::all_to_all,
             64e6,
             {"clos.rate=5GB/s", "clos.oversubscription=16"}},
        {"trn1.2xlarge x 64", "bruck", schedule::Collective::all_to_all, 64e6, {"efa.oversubscription=16"}},
        {"trn1.32xlarge x 2", "ring", schedule::Collective::all_reduce, 1024, {"era.2023.away=40us"}}}) {
    MachineSpec spec = machine_spec(c.machine);
    for (const char* change : c.changes) what_if(spec, change);
    PricingSession priced(std::move(spec));
    CollectiveQuestion q = all_reduce_on(priced, c.bytes);
    q.settings.operation.collective = c.collective;
    q.config = algorithm_config_named(c.algorithm);
    q.launches = true;
    const CollectiveAnswer a = answer(q, priced);
    EXPECT_TRUE(0 < a.interval.low && a.interval.low <= a.price.time) << c.machine << ": " << a.interval.low;
    EXPECT_GE(a.interval.high, a.price.time) << c.machine;
    EXPECT_EQ(a.launches.empty(), priced.spec().chip.empty()) << c.machine;
    for (const LaunchVariant& other : a.launches) {
      EXPECT_TRUE(0 < other.low && other.low <= other.time) << c.machine << " by " << other.by << ": " << other.low;
      EXPECT_GE(other.high, other.time) << c.machine << " by " << other.by;
    }
  }
}

TEST(CollectiveAnswer, IsTheSameForAScheduleAndForTheWayThatMakesIt) {
  PricingSession priced(machine_spec("torus:4x4"));
  CollectiveQuestion by_config = all_reduce_on(priced, 1 << 16);
  by_config.config = algorithm_config_named("ring@16*2");
  by_config.timeline = true;
  const CollectiveAnswer a = answer(by_config, priced);
  const schedule::Schedule made =
      make(schedule::algorithm_named("ring"), priced.pricer(by_config).request(*by_config.config));
  CollectiveQuestion by_schedule = by_config;
  by_schedule.config.reset();
  by_schedule.schedule = &made;
  const CollectiveAnswer b = answer(by_schedule, priced);
  EXPECT_EQ(a.price.time, b.price.time);
  EXPECT_EQ(a.interval.high, b.interval.high);
  ASSERT_TRUE(a.seen && b.seen);
  EXPECT_GT(a.seen->timeline.spans.size(), 0U);
  // If a config is asked for, its run may be folded and simulates one rank; for a given schedule all are simulated.
  EXPECT_LE(a.seen->gone_through, b.seen->gone_through);
  double all = 0;
  for (const double bytes : b.carried) all += bytes;
  EXPECT_GE(all, 2.0 * 15 * (1 << 16));  // what a ring moves
}

TEST(CollectiveAnswer, UnevenBlocksArePricedAsTheyAre) {
  PricingSession priced(machine_spec("torus:4"));
  CollectiveQuestion q = all_reduce_on(priced, 4 * 4000);
  q.settings.operation.collective = schedule::Collective::all_gather_v;
  q.blocks = {1000, 1000, 1000, 1000};
  const Time even = answer(q, priced).price.time;
  q.blocks = {3700, 100, 100, 100};
  EXPECT_GT(answer(q, priced).price.time, even);
  // Each rank keeps nearly all of its data, and sends one element to the next rank.
  q.settings.operation.collective = schedule::Collective::all_to_all_v;
  q.blocks.assign(16, 0);
  for (std::size_t r = 0; r < 4; ++r) q.blocks[5 * r] = 3999, q.blocks[4 * r + (r + 1) % 4] = 1;
  const Price kept = answer(q, priced).price;
  EXPECT_GE(kept.time, kept.bounds.most());
}

TEST(CollectiveAnswer, NoiseIsDrawnAsOftenAsAsked) {
  PricingSession priced(machine_spec("trn2.48xlarge"));
  CollectiveQuestion q = all_reduce_on(priced, 1024);
  q.noise.runs = 5, q.interval = false;
  const CollectiveAnswer a = answer(q, priced);
  EXPECT_EQ(a.noisy.times.size(), 5U);
  EXPECT_GE(a.noisy.times.front(), a.price.time);
  q.noise.seed = 3;
  EXPECT_NE(answer(q, priced).noisy.times, a.noisy.times);
}

TEST(CollectiveAnswer, SaysWhatIsMissingWhereverItIsStopped) {
  std::vector<std::string> tasks;
  for (int polls = 0, complete = 0; complete == 0 && polls < 1 << 20; polls = 2 * polls + 1) {
    StopsAt watch(polls);
    PricingSession priced(machine_spec("trn2.48xlarge"), &watch);
    CollectiveQuestion q = all_reduce_on(priced, 1 << 20);
    q.timeline = true, q.noise.runs = 2;
    const CollectiveAnswer a = answer(q, priced);
    EXPECT_EQ(a.interrupted.empty() && a.price.time != forever, !watch.interrupted()) << polls;
    complete = watch.interrupted() ? 0 : 1;
    tasks = watch.tasks;
  }
  EXPECT_EQ(tasks, (std::vector<std::string>{"trying the algorithms", "pricing", "pricing again with other figures",
                                             "pricing with noise", "once more for the timeline"}));
}

TEST(CollectiveAnswer, RefusesAWayForAnotherNumberOfRanks) {
  PricingSession priced(machine_spec("torus:5"));
  CollectiveQuestion q = all_reduce_on(priced, 1024);
  q.config = algorithm_config_named("ring@4");
  EXPECT_THROW(answer(q, priced), std::invalid_argument);
}

TEST(CollectiveAnswer, AWorkloadIsPlayedWithOneChoiceForAllFigures) {
  PricingSession priced(machine_spec("trn2.48xlarge"));
  const Workload step =
      workload_of(read_graph("step", "ranks 8\nall_reduce sums 1MiB\ncompute more 10us after sums\n"));
  const WorkloadAnswer a = answer(step, {}, {.runs = 2}, priced);
  EXPECT_EQ(a.played.time, play(step, priced.machine()).time);
  EXPECT_LT(a.interval.low, a.interval.high);
  EXPECT_EQ(a.noisy.times.size(), 2U);
}

// A workload's interval includes the figures of operations if the workload has operations, and only then.
TEST(CollectiveAnswer, AWorkloadsIntervalHoldsWhatItsOperationsMayTake) {
  const char* const update =
      "ranks 2\noperation up adamw rows=8192 columns=8192 type=f32\ncompute b up*10\nall_reduce c 1MiB after b\n";
  const Workload step = workload_of(read_graph("step", update));
  PricingSession priced(machine_spec("trn1.2xlarge"));
  const WorkloadAnswer a = answer(step, {}, {}, priced);
  MachineSpec slow = priced.spec();
  slow.figures.set("operation.update.adamw", slow.figures.at("operation.update.adamw").high);
  const Time slowest = play(step, Machine(slow)).time;
  EXPECT_GT(slowest, a.played.time);
  EXPECT_GE(a.interval.high, slowest);
  const auto found = std::ranges::find(a.interval.sensitivities, "operation.update.adamw", &Sensitivity::figure);
  ASSERT_NE(found, a.interval.sensitivities.end());
  EXPECT_EQ(found->high, slowest);
  const Workload sums = workload_of(read_graph("step", "ranks 2\nall_reduce c 1MiB\n"));
  for (const Sensitivity& s : answer(sums, {}, {}, priced).interval.sensitivities)
    EXPECT_FALSE(s.figure.starts_with("operation.")) << s.figure;
}

// A workload can be played at either end of every figure's range.
TEST(CollectiveAnswer, EveryChipsFiguresCanBeTried) {
  for (const char* name : {"trn1.2xlarge", "trn2.3xlarge", "trn3.gen1", "inf2.48xlarge"}) {
    PricingSession priced(machine_spec(name));
    const Workload step = workload_of(read_graph(
        "step",
        "ranks 2\noperation mm product rows=512 columns=512 inner=512\noperation up adamw rows=512 columns=512 "
        "type=f32\noperation n rms_norm rows=512 columns=512\noperation s softmax rows=512 columns=512\n"
        "compute a mm up n s\ncompute b 1GFLOP 1MB after a\n"));
    const WorkloadAnswer a = answer(step, {}, {}, priced);
    EXPECT_LT(a.interval.low, a.played.time) << name;
    EXPECT_GT(a.interval.high, a.played.time) << name;
  }
}

}  // namespace
}  // namespace trellis::sim
