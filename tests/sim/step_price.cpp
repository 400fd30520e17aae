#include "sim/cluster/workload/step_price.h"

#include <gtest/gtest.h>

#include "sim/cluster/operation/operation_model.h"
#include "tests/why.h"

namespace trellis::sim {
namespace {

const char* const products =
    "operation mm product rows=4096 columns=4096 inner=4096\n"
    "operation norm rms_norm rows=4096 columns=4096\n";

double seconds_of(const OperationShape& s, const Machine& machine) {
  const Figures& f = machine.spec().figures;
  return operation_time(s, EngineRates(f, f.number("cores") / machine.cores())).total;
}

const OperationShape mm{.kind = "product", .rows = 4096, .columns = 4096, .inner = 4096};
const OperationShape norm{.kind = "rms_norm", .rows = 4096, .columns = 4096};

TEST(StepPrice, OneRankTakesTheSumOfItsOperations) {
  const Machine machine = machine_named("trn1.2xlarge");
  const ExecutionGraph graph =
      read_graph("step", std::string("ranks 1\n") + products + "compute a mm*3 norm\ncompute b mm after a\n");
  const StepPrice p = price_step(graph, machine);
  const double expected = (4 * seconds_of(mm, machine) + seconds_of(norm, machine)) * p.factors.software;
  EXPECT_NEAR(in_seconds(p.time), expected, 1e-9);
  EXPECT_EQ(p.classes[0].busy(), p.time);
  EXPECT_EQ(p.classes[0].idle, 0);
  EXPECT_EQ(p.path.size(), 2U);
  EXPECT_LT(p.low, p.time);
  EXPECT_GT(p.high, p.time);
}

TEST(StepPrice, APlayedWorkloadHasTheSameOperations) {
  const Machine machine = machine_named("trn1.2xlarge");
  const ExecutionGraph graph = read_graph("step", std::string("ranks 2\n") + products + "compute a mm*3 norm\n");
  EXPECT_NEAR(in_seconds(price(graph, machine).time), 3 * seconds_of(mm, machine) + seconds_of(norm, machine), 1e-9);
}

TEST(StepPrice, WhatIsWaitedForIsExposedAndWhatRunsBesideIsNot) {
  const Machine machine = machine_named("trn1.32xlarge");
  const auto priced = [&](const char* sum) {
    return price_step(read_graph("step", std::string("ranks 32\n") + products + "compute a mm*30\n" + sum), machine);
  };
  const StepPrice waited = priced("all_reduce g 64MB after a stream compute\ncompute b mm*30\n");
  const StepPrice beside = priced("all_reduce g 64MB after a\ncompute b mm*30\n");
  const StepPrice late = priced("all_reduce g 64MB after a\ncompute b mm*3 after g\n");
  EXPECT_GT(waited.classes[0].exposed[0], 0);
  EXPECT_EQ(waited.time - beside.time, waited.classes[0].exposed[0]);
  EXPECT_EQ(beside.classes[0].exposed[0], 0);
  EXPECT_EQ(late.classes[0].exposed[0], late.exchanges[0].together);
}

// Of groups that do the same, only some are simulated. A defect counts even if its group is on another host than the
// first group, or if there are more groups than are simulated at once.
TEST(StepPrice, ADefectCountsInWhicheverGroupItIs) {
  const auto exposed = [](const char* machine, const std::string& groups, const char* change) {
    MachineSpec spec = machine_spec(machine);
    if (*change != 0) what_if(spec, change);
    const Machine on(std::move(spec));
    const std::string step = "ranks " + std::to_string(on.ranks()) + "\ngroup g" + groups + "\n" + products +
                             "compute a mm\nall_reduce g 64MB on g after a stream compute\n";
    ExecutionGraph graph = read_graph("step", step);
    for (std::size_t c = 1; c < graph.classes.size(); ++c)  // all do the same
      graph.classes[0].ranks.insert(graph.classes[0].ranks.end(), graph.classes[c].ranks.begin(),
                                    graph.classes[c].ranks.end());
    graph.classes.resize(1);
    return price_step(graph, on).classes[0].exposed[0];
  };
  const auto groups_of = [](int size, int ranks) {
    std::string groups;
    for (int r = 0; r < ranks; r += size) groups += " " + std::to_string(r) + "-" + std::to_string(r + size - 1);
    return groups;
  };
  const char* const two_hosts = "trn1.32xlarge x 2";
  const std::string eights = groups_of(8, 64), pairs = groups_of(2, 256);
  const Time usual = exposed(two_hosts, eights, "");
  for (const auto& [first, other] : {std::pair("slow:0-4:0.1", "slow:32-36:0.1"), {"hbm:0:0.1", "hbm:32:0.1"}}) {
    EXPECT_GT(exposed(two_hosts, eights, first), usual) << first;
    EXPECT_EQ(exposed(two_hosts, eights, first), exposed(two_hosts, eights, other)) << other;
  }
  EXPECT_GT(exposed(two_hosts, eights, "hbm:40:0.1"), usual);
  EXPECT_GT(exposed("trn2u", pairs, "hbm:250:0.01"), exposed("trn2u", pairs, ""));
}

// If a layout has data and context parallelism, gradients are summed over both axes together; `train` calls that axis
// sharding.
TEST(StepPrice, AFigureOfTheDataAxisCountsForGradientsOverDataAndContext) {
  const Machine usual = machine_named("trn1.32xlarge");
  MachineSpec spec = usual.spec();
  const std::string text = spec.figures.text();
  spec.figures = Figures::read("like usual\nstep.exposed.data = 0.25 0..1 | assumed | of a chip file of one's own\n",
                               [&](std::string_view) { return std::string_view(text); });
  const Machine hiding{spec};
  const auto exposed = [](const Machine& machine, const std::string& axis) {
    const std::string step = std::string("ranks 32\ngroup ") + axis + " 0-7 8-15 16-23 24-31\n" + products +
                             "compute a mm\nall_reduce g 64MB on " + axis + " after a stream compute\n";
    ExecutionGraph graph = read_graph("step", step);
    graph.communicators[0].name = axis;
    return price_step(graph, machine).classes[0].exposed[0];
  };
  for (const char* axis : {"data", "sharding"})
    EXPECT_NEAR(static_cast<double>(exposed(hiding, axis)), 0.25 * static_cast<double>(exposed(usual, axis)), 1)
        << axis;
  for (const char* axis : {"context", "pipeline", "tensor"})
    EXPECT_EQ(exposed(hiding, axis), exposed(usual, axis)) << axis;
  EXPECT_EQ(exposed_figure_of("sharding", hiding), "step.exposed.data");
  EXPECT_EQ(exposed_figure_of("sharding", usual), "");
}

TEST(StepPrice, GroupsOfAHostShareItsWayOut) {
  const Machine machine = machine_named("trn1.32xlarge x 2");
  std::string groups = "group one 0,32\ngroup all";
  for (int r = 0; r < 32; ++r) groups += " " + std::to_string(r) + "," + std::to_string(r + 32);
  const auto took = [&](const char* on) {
    return price_step(read_graph("step", "ranks 64\n" + groups + "\nall_reduce g 64MB on " + on + "\n"), machine)
        .exchanges[0];
  };
  const ExchangePrice alone = took("one"), shared = took("all");
  EXPECT_EQ(alone.together, alone.alone);
  EXPECT_EQ(shared.alone, alone.alone);
  EXPECT_GT(shared.together, 2 * shared.alone);
}

TEST(StepPrice, SlowRanksSlowTheirClassDown) {
  MachineSpec spec = machine_spec("trn1.2xlarge");
  what_if(spec, "straggler:1:0.5");
  const ExecutionGraph graph = read_graph("step", std::string("ranks 2\n") + products + "compute a mm\n");
  EXPECT_NEAR(static_cast<double>(price_step(graph, Machine(spec)).time),
              2.0 * static_cast<double>(price_step(graph, machine_named("trn1.2xlarge")).time), 10);
}

TEST(StepPrice, SlowMemorySlowsItsClassDown) {
  const auto priced = [](const std::string& change, const char* tasks) {
    MachineSpec spec = machine_spec("trn1.32xlarge");
    if (!change.empty()) what_if(spec, change);
    const Machine machine(std::move(spec));
    const std::string update = "operation up adamw rows=8192 columns=8192 type=f32\n";
    const ExecutionGraph graph = read_graph("step", "ranks 32\n" + update + tasks);
    StepPricer pricer(graph, machine);
    const StepFactors factors = factors_of(graph, machine, {});
    const StepPrice price = pricer.price(factors);
    for (std::uint32_t c = 0; c < graph.classes.size(); ++c) {
      EXPECT_NEAR(pricer.kinds(factors, c).at(0).seconds, in_seconds(price.classes[c].busy()), 1e-9);
      EXPECT_EQ(pricer.work(factors)[c].all, price.classes[c].busy());
    }
    return price;
  };
  const char *const all = "compute a up*10\n", *const halves = "compute a up*10 on 0-15\ncompute b up*10 on 16-31\n";
  const auto busy = [&](const char* change, const char* tasks, std::size_t of) {
    return in_seconds(priced(change, tasks).classes[of].busy());
  };
  const double usual = busy("", all, 0), slow = busy("hbm.rate=82GB/s", all, 0);
  EXPECT_GT(slow, 5 * usual);
  for (const char* change : {"hbm:0:0.1", "hbm:31:0.1"}) EXPECT_NEAR(busy(change, all, 0), slow, 1e-9) << change;
  EXPECT_EQ(busy("hbm:31:0.1", halves, 0), usual);
  EXPECT_NEAR(busy("hbm:31:0.1", halves, 1), slow, 1e-9);
}

// With the values that are refused, an interval would not contain its time or would reach below zero, or computation
// would take no time.
TEST(StepPrice, FiguresOfAStepAreWithinReason) {
  const ExecutionGraph graph = read_graph("step", std::string("ranks 64\n") + products + "compute a mm\n");
  for (const auto& [change, wrong] :
       {std::pair("step.spread=0", "step.spread is 0: expected at least 1"),
        {"step.spread=0.8", "step.spread is 0.8: expected at least 1"},
        {"step.level=0", "step.level is 0: expected more than 0"},
        {"step.level=-1", "step.level is -1: expected more than 0"},
        {"software.2.22=0", "software.2.22 is 0: expected more than 0"},
        {"step.hosts=-1", "step.hosts is -1: expected more than -1"},
        {"step.exposed.tensor=-0.1", "step.exposed.tensor is -0.1: expected at least 0"}}) {
    MachineSpec spec = machine_spec("trn1.32xlarge x 2");
    what_if(spec, change);
    ExecutionGraph with_tensor = graph;
    with_tensor.communicators.push_back({.name = "tensor"});
    EXPECT_EQ(why([&] { factors_of(with_tensor, Machine(spec), {}); }), wrong);
  }
}

TEST(StepPrice, ReleasesOfTheSoftwareCount) {
  const Machine machine = machine_named("trn1.2xlarge");
  const ExecutionGraph graph = read_graph("step", std::string("ranks 1\n") + products + "compute a mm\n");
  const auto factor = [&](const char* release) {
    return price_step(graph, machine, {.software = release}).factors.software;
  };
  EXPECT_EQ(factor("2.13.1"), factor("2.10"));
  EXPECT_GT(factor("2.5"), factor("2.13"));
  EXPECT_LT(factor("2.21"), factor("2.13"));
  EXPECT_EQ(factor("2.99"), factor(""));
  EXPECT_NE(why([&] { factor("1.0"); }).find("expected 2.3 or later"), std::string::npos);
  for (const char* wrong : {"new", "2x21", "2.", "2.21-1", "2.21.1.1"})
    EXPECT_NE(why([&] { factor(wrong); }).find("expected a release"), std::string::npos) << wrong;
}

TEST(StepPrice, RefusesAMachineWithoutEnginesAndTooFewRanks) {
  const ExecutionGraph graph = read_graph("step", std::string("ranks 4\n") + products + "compute a mm\n");
  EXPECT_NE(why([&] { price_step(graph, machine_named("ring:4")); }).find("has no chip"), std::string::npos);
  EXPECT_NE(why([&] { price_step(graph, machine_named("trn1.2xlarge")); }).find("is for 4 ranks"), std::string::npos);
}

TEST(OperationText, ReadsBackWhatItPrints) {
  const char* const text =
      "ranks 1\noperation a attention rows=128 columns=128 inner=64 batch=8 shared=4 type=f32 causal flash\n"
      "operation b elementwise rows=3 columns=5 inputs=3 outputs=2 vector=1.5 scalar=2 fused\ncompute c a*2 b\n";
  const ExecutionGraph graph = read_graph("step", text);
  ASSERT_EQ(graph.shapes.size(), 2U);
  EXPECT_EQ(graph.shapes[0], (OperationShape{.kind = "attention",
                                             .rows = 128,
                                             .columns = 128,
                                             .inner = 64,
                                             .batch = 8,
                                             .shared = 4,
                                             .type = "f32",
                                             .causal = true,
                                             .flash = true}));
  EXPECT_EQ(graph.shapes[1].vector, 1.5);
  EXPECT_EQ(graph.classes[0].tasks[0].work,
            (std::vector<schedule::RepeatedOperation>{{.shape = 0, .count = 2}, {.shape = 1, .count = 1}}));
  EXPECT_NE(why([] { read_graph("s", "ranks 1\noperation a add rows=0\n"); }).find("rows=0: expected 1 to"),
            std::string::npos);
  EXPECT_NE(why([] { read_graph("s", "ranks 1\noperation a add row=1\n"); }).find("'row=1': expected rows="),
            std::string::npos);
}

}  // namespace
}  // namespace trellis::sim
