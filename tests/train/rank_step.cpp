// The step as a value: its proof, its memory, its buckets, and the detection of damage to it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "schedule/graph/graph_text.h"
#include "schedule/graph/match_exchanges.h"
#include "schedule/graph/merge_computations.h"
#include "schedule/graph/peak_memory.h"
#include "sim/cluster/workload/chakra.h"
#include "sim/cluster/workload/play.h"
#include "tests/train/pipelined.h"
#include "train/step/memory_plan.h"
#include "train/update/gradient_buckets.h"
#include "train/update/gradient_exchange.h"
#include "train/whole/chakra.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"
#include "train/whole/traffic.h"
#include "train/whole/zero_bubble_memory.h"

namespace trellis::train {
namespace {

TEST(StepValue, EverySortIsProved) {
  for (const auto& [chunks, schedule] :
       {std::pair{1, "1f1b"}, {1, "gpipe"}, {1, "zb-h1"}, {2, "interleaved"}, {2, "zb-v"}})
    for (Rank tensor : {1, 2, 4}) {
      const StepConfig c = pipelined(tensor, 4, chunks, schedule);
      const std::vector<RankStep> stages = classes_of(c, 8 * tensor);
      EXPECT_EQ(check_step(c, 8 * tensor, stages, graph_of(stages)), "") << schedule << " T" << tensor;
    }
}

TEST(StepValue, AllRanksOfAStageDoTheSame) {
  const StepConfig c = pipelined(2, 2, 1);
  const std::vector<RankStep> stages = classes_of(c, 8);
  const Mesh& mesh = stages[0].mesh;
  for (Rank r = 0; r < 8; ++r) {
    const RankStep own = lay_out(c, 8, r);
    const StepProgram& like = stages[static_cast<std::size_t>(mesh.place(r).pipeline)].program;
    ASSERT_EQ(own.program.operations.size(), like.operations.size());
    for (std::size_t i = 0; i < like.operations.size(); ++i) {
      EXPECT_EQ(own.program.operations[i].name, like.operations[i].name);
      EXPECT_EQ(own.program.bytes_exchanged(own.program.operations[i]), like.bytes_exchanged(like.operations[i]));
    }
  }
}

using schedule::GraphTask;

// An exchange is lost, has another size, type or label, or goes to another rank.
TEST(StepValue, DamageToExchangesIsCaught) {
  std::mt19937 random(3);
  const schedule::ExecutionGraph whole = graph_of(classes_of(pipelined(2, 4, 1), 16));
  ASSERT_EQ(schedule::match(whole).fault, "");
  int done = 0;
  for (int i = 0; i < 200; ++i) {
    schedule::ExecutionGraph graph = whole;
    auto& tasks = graph.classes[random() % 4].tasks;
    std::vector<std::size_t> among;  // tasks in which other stages take part
    for (std::size_t t = 0; t < tasks.size(); ++t)
      if (tasks[t].kind != GraphTask::Kind::compute && graph.communicators[tasks[t].communicator].name == "pipeline")
        among.push_back(t);
    GraphTask& t = tasks[among[random() % among.size()]];
    const int kind = i % 5;
    if (kind == 0) t = {.name = "lost", .number = t.number, .after = t.after};
    if (kind == 1) ++t.amounts[0].count;
    if (kind == 2) t.amounts[0].type = static_cast<std::uint8_t>((t.amounts[0].type + 1) % graph.types.size());
    if (kind == 3) t.label += 2;
    if (kind == 4) t.operation.peer = (t.operation.peer + 1) % 4;
    if (kind == 3 && t.kind == GraphTask::Kind::collective) continue;  // has no label
    ++done;
    EXPECT_NE(schedule::match(graph).fault, "") << "kind " << kind << ", task " << t.name;
  }
  EXPECT_GT(done, 150);
}

TEST(StepValue, TwoSendersThatWaitForEachOtherAreCaught) {
  schedule::ExecutionGraph graph = graph_of(classes_of(pipelined(1, 2, 1), 2));
  // Stage 0 waits for the first gradient before it sends the activations that this is the gradient of.
  auto& tasks = graph.classes[0].tasks;
  const auto receive = std::ranges::find(tasks, GraphTask::Kind::receive, &GraphTask::kind);
  const auto send = std::find_if(std::make_reverse_iterator(receive), tasks.rend(),
                                 [](const GraphTask& t) { return t.kind == GraphTask::Kind::send; });
  ASSERT_NE(send, tasks.rend());
  std::swap(*receive, *send);
  EXPECT_NE(schedule::match(graph).fault.find("it waits for itself"), std::string::npos)
      << schedule::match(graph).fault;
}

TEST(StepValue, TensorsThatAreAliveTogetherDoNotOverlap) {
  StepConfig c = pipelined(2, 2, 2, "zb-v");
  c.flash_attention = true;  // without it, an accelerator has arrays that have no place here
  const RankStep step = lay_out(c, 8, 3);
  const StepProgram& p = step.program;
  const MemoryPlan plan = plan_memory(p);
  std::vector<std::size_t> first(p.tensors.size(), p.operations.size()), last(p.tensors.size(), 0);
  for (std::size_t i = 0; i < p.operations.size(); ++i)
    for (const auto* list : {&p.operations[i].reads, &p.operations[i].writes})
      for (TensorId t : *list)
        first[static_cast<std::size_t>(t)] = std::min(first[static_cast<std::size_t>(t)], i),
        last[static_cast<std::size_t>(t)] = i;
  for (std::size_t a = 0; a < p.tensors.size(); ++a)
    if (lasting(p.tensors[a].category)) first[a] = 0, last[a] = p.operations.size();
  for (std::size_t a = 0; a < p.tensors.size(); ++a) {
    EXPECT_LE(plan.offsets[a] + p.tensors[a].bytes(), plan.bytes);
    for (std::size_t b = a + 1; b < p.tensors.size(); ++b) {
      const bool together = first[a] <= last[b] && first[b] <= last[a];
      const bool apart = plan.offsets[a] + p.tensors[a].bytes() <= plan.offsets[b] ||
                         plan.offsets[b] + p.tensors[b].bytes() <= plan.offsets[a];
      ASSERT_TRUE(!together || apart) << p.tensors[a].name << " and " << p.tensors[b].name;
    }
  }
  const schedule::ExecutionGraph whole = graph_of(classes_of(c, 8));
  const std::size_t peak = schedule::peak_memory(whole, whole.classes[1]).bytes;  // of rank 3's stage
  EXPECT_GE(plan.bytes, peak);
  EXPECT_LT(static_cast<double>(plan.bytes), 1.35 * static_cast<double>(peak));
}

TEST(StepValue, RecomputingAndZeroSaveMemory) {
  StepConfig c = pipelined(1, 1, 1);
  c.seq_length = 64, c.global_batch_size = 2, c.strategy.zero1 = false;
  const auto of = [&](Category category) {
    const schedule::ExecutionGraph graph = graph_of(classes_of(c, 2));
    return schedule::peak_memory(graph, graph.classes[0]).by_category[static_cast<std::size_t>(category)];
  };
  const auto activations = [&] { return of(Category::activation); };
  const auto moments = [&] { return of(Category::moment); };
  const std::size_t none = activations(), whole = moments();
  c.recompute = Recompute::selective;
  const std::size_t selective = activations();
  c.recompute = Recompute::full;
  EXPECT_LT(selective, none);
  EXPECT_LT(2 * activations(), none);
  c.strategy.zero1 = true;
  EXPECT_NEAR(static_cast<double>(moments()), static_cast<double>(whole) / 2, 0.01 * static_cast<double>(whole));
}

// The last stage keeps data until its weights' gradients are computed, so recomputation saves it little.
TEST(StepValue, SplitSchedulesSayWhatTheyHoldMore) {
  StepConfig c = pipelined(1, 4, 1);
  c.global_batch_size = 16;
  c.flash_attention = true;  // without it, the first stage holds most by either schedule, for attention
  const auto said = [&] {
    const std::vector<RankStep> classes = classes_of(c, 4);
    return split_memory(c, 4, classes, graph_of(classes));
  };
  c.strategy.schedule = "1f1b";
  EXPECT_EQ(said(), "");
  c.strategy.schedule = "zb-h1";
  EXPECT_TRUE(said().starts_with("zb-h1 holds up to ")) << said();
  EXPECT_NE(said().find("on a rank (stage 3), and 1f1b of the same layers "), std::string::npos) << said();
  EXPECT_EQ(said().find("recomputation"), std::string::npos);
  c.recompute = Recompute::full;
  EXPECT_NE(said().find("zb-h1: full recomputation saves little"), std::string::npos) << said();
}

// With ZeRO-1, a step begins to gather parameters, and the next step waits for them block by block.
TEST(StepValue, ParametersAreGatheredBesideTheNextForwardPass) {
  StepConfig c = pipelined(2, 2, 1);
  const std::vector<RankStep> stages = classes_of(c, 8);
  EXPECT_EQ(schedule::match(graph_of(stages, 2)).fault, "");
  for (const RankStep& s : stages) {
    std::vector<std::size_t> waits, begins;
    std::size_t first_backward = 0;
    const auto& operations = s.program.operations;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (operations[i].ahead) waits.push_back(i);
      if (operations[i].name.find("gather_parameters") != std::string::npos) begins.push_back(i);
      if (first_backward == 0 && operations[i].name.starts_with("b0")) first_backward = i;
    }
    EXPECT_EQ(waits.size(), 5U) << "four layers, and the embedding or the head";
    EXPECT_EQ(begins.size(), waits.size());
    EXPECT_LT(waits.back(), first_backward);
    EXPECT_GT(begins.front(), first_backward);
    const auto waited = static_cast<std::size_t>(waits[1]);
    EXPECT_NE(operations[waited - 1].kind, Operation::Kind::wait)
        << "a block runs before the next one's are waited for";
  }
}

// A step that is written and read back has the same work for each rank, and every exchange has all its ends.
TEST(StepValue, IsAWorkloadAsTextAndAsChakraTraces) {
  for (const auto& [chunks, schedule] : {std::pair{1, "1f1b"}, {2, "zb-v"}}) {
    const std::vector<RankStep> stages = classes_of(pipelined(4, 2, chunks, schedule), 16);
    const schedule::ExecutionGraph graph = schedule::merged(graph_of(stages));
    const sim::Workload text = sim::workload_of(sim::read_graph("step", schedule::graph_text(graph)));
    std::vector<std::string> traces, names;
    for (Rank r = 0; r < 16; ++r) traces.push_back(chakra_trace(stages, r)), names.push_back(std::to_string(r));
    std::vector<sim::ChakraFile> files;
    for (std::size_t r = 0; r < 16; ++r) files.push_back({names[r], traces[r]});
    const sim::Workload chakra = sim::workload_of(sim::read_chakra("step", files));
    const auto total = [](const sim::Workload& w) {
      double flops = 0;
      for (const sim::WorkloadTask& p : w.parts)
        if (p.computes)
          for (std::uint32_t cell : p.cells) flops += p.task->flops * static_cast<double>(w.cells[cell].ranks.size());
      return flops;
    };
    double flops = 0;
    for (const RankStep& s : stages)
      for (const Operation& o : s.program.operations) flops += 8 * std::floor(o.flops);
    EXPECT_NEAR(total(text) / flops, 1, 1e-6) << schedule;
    EXPECT_NEAR(total(chakra) / flops, 1, 1e-6) << schedule;
    // The step has the same price as the text that is written of it.
    const sim::Machine machine(sim::machine_named("trn2.48xlarge"));
    const sim::PlayResult direct = sim::price(graph, machine), read = sim::play(text, machine);
    EXPECT_EQ(direct.time, read.time) << schedule;
    EXPECT_EQ(direct.parts.size(), read.parts.size());
  }
}

double sent(const RankStep& step, Axis axis) {
  double bytes = 0;
  for (const Operation& o : step.program.operations)
    if (o.exchange.axis == axis) bytes += bytes_sent(step, o);
  return bytes;
}

// ZeRO-1 on D ranks: each rank sends shards of f32 gradients and of bf16 parameters to each other rank. N is the padded
// size.
TEST(StepValue, ARankSendsAShardToEachOther) {
  for (const Rank data : {2, 4, 16}) {
    StepConfig c = pipelined(1, 1, 1);
    c.precision = Precision::mixed;
    const RankStep step = lay_out(c, data, 0);
    double n = 0;
    for (const OptimizerState& s : step.states)
      n += static_cast<double>(s.parameter->padded_rows * s.parameter->slice.column_count);
    // Beside them, two numbers in f64: of the norm and of the loss, each summed by all.
    const double expected = 6 * n / data * (data - 1), numbers = 2 * 2 * 8.0 / data * (data - 1);
    EXPECT_DOUBLE_EQ(sent(step, Axis::data), expected + numbers) << data;
    c.strategy.zero1 = false;
    const RankStep whole = lay_out(c, data, 0);
    double plain = 0;
    for (const Parameter& p : whole.parameters.all()) plain += static_cast<double>(p.slice.elements());
    EXPECT_NEAR(sent(whole, Axis::data), 2 * 4 * plain / data * (data - 1), 2 * 8) << data;
  }
}

// A message counts at its sender: the first stage sends activations, the last one gradients, the middle ones both.
TEST(StepValue, APipelineMessageIsSentOnce) {
  StepConfig c = pipelined(1, 4, 1);
  c.model.tie_word_embeddings = false;
  const std::vector<RankStep> stages = classes_of(c, 4);
  const double message = 16 * 32 * 4, sums = 2 * 2 * 8.0 / 4 * 3;  // 16 tokens of 32 in f32; norm and loss over stages
  for (std::size_t s = 0; s < 4; ++s)
    EXPECT_DOUBLE_EQ(sent(stages[s], Axis::pipeline), (s == 0 || s == 3 ? 1 : 2) * 16 * message + sums) << s;
}

TEST(StepValue, AStageCostsWhatItsPassesCompute) {
  for (const auto& [chunks, schedule] : {std::pair{1, "1f1b"}, {1, "zb-h1"}, {2, "zb-v"}, {2, "interleaved"}}) {
    const std::vector<RankStep> stages = classes_of(pipelined(1, 2, chunks, schedule), 2);
    for (const RankStep& step : stages) {
      double flops = 0, costs = 0;
      for (const Operation& o : step.program.operations)
        if (o.name[0] == 'f' || (o.name[0] == 'b' && o.name[1] != 'e') || o.name[0] == 'w') flops += o.flops;
      ASSERT_EQ(step.costs.size(), static_cast<std::size_t>(chunks));
      for (const StageCosts& each : step.costs) {
        costs += static_cast<double>((each.forward + each.backward + each.weight) *
                                     static_cast<std::int64_t>(step.micro_batches));
        EXPECT_EQ(each.weight > 0, std::string_view(schedule).starts_with("zb"));
      }
      EXPECT_NEAR(costs / flops, 1, 0.01) << schedule << ", stage " << step.place.pipeline;
    }
  }
}

TEST(Buckets, FollowTheirRules) {
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(all_reduce_buckets(Sizes{4, 4, 4, 20, 1}, 10), (std::vector<Bucket>{{0, 1}, {2}, {3}, {4}}));
  EXPECT_EQ(all_reduce_buckets(Sizes{10, 1}, 10), (std::vector<Bucket>{{0}, {1}}));
  // 12 exceeds the cap of 10. The pending 4 is less than half of the cap, and 4 + 12 is at most twice the cap, so both
  // go into one bucket.
  EXPECT_EQ(reduce_scatter_buckets(Sizes{4, 12, 3}, 10), (std::vector<Bucket>{{0, 1}, {2}}));
  EXPECT_EQ(reduce_scatter_buckets(Sizes{6, 12, 3}, 10), (std::vector<Bucket>{{0}, {1}, {2}}));
  EXPECT_EQ(reduce_scatter_buckets(Sizes{4, 5, 6}, 10), (std::vector<Bucket>{{0, 1}, {2}}));
}

TEST(Buckets, CapsByPrecision) {
  StepConfig c;
  EXPECT_EQ(bucket_bytes(c), std::size_t{512} << 20);
  c.strategy.zero1 = true;
  EXPECT_EQ(bucket_bytes(c), std::size_t{130} << 20);
  c.precision = Precision::mixed;
  EXPECT_EQ(bucket_bytes(c), std::size_t{65} << 20);
}

TEST(Partition, LastStagesGetMore) {
  EXPECT_EQ(auto_partition(19, 4), (std::vector<std::size_t>{4, 5, 5, 5}));
  EXPECT_EQ(auto_partition(13, 5), (std::vector<std::size_t>{2, 2, 3, 3, 3}));
  EXPECT_EQ(auto_partition(40, 4), (std::vector<std::size_t>{10, 10, 10, 10}));
}

TEST(Partition, CutsAreTheLastLayerOfEachStage) {
  StepConfig c = pipelined(1, 4, 1);
  c.strategy.cuts = {0, 1, 5};
  EXPECT_EQ(derive(c, 4).stage_of_layer, (std::vector<std::size_t>{0, 1, 2, 2, 2, 2, 3, 3}));
  c.strategy.cuts = {0, 1};
  EXPECT_THROW(derive(c, 4), std::invalid_argument);
  c.strategy.cuts = {0, 1, 7};
  EXPECT_THROW(derive(c, 4), std::invalid_argument);
}

// Llama-3-70B: a rank's memory and its gradients' bytes, and the time to lay the step out.
TEST(StepValue, SeventyBillionParametersOn512Ranks) {
  StepConfig c;
  c.model = {.vocab_size = 128256,
             .hidden_size = 8192,
             .num_layers = 80,
             .num_attention_heads = 64,
             .num_key_value_heads = 8,
             .intermediate_size = 28672,
             .max_position_embeddings = 8192,
             .rope_theta = 500000};
  c.strategy = {.tensor = 32, .pipeline = 8, .sequence_parallel = true, .zero1 = true};
  c.precision = Precision::bf16_sr;
  c.seq_length = 8192, c.global_batch_size = 64;
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<RankStep> stages = classes_of(c, 512);
  EXPECT_EQ(check_step(c, 512, stages, graph_of(stages)), "");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  RecordProperty("seconds", std::to_string(took.count()));
  std::size_t middle = 0;
  for (const Parameter& p : stages[3].parameters.all()) middle += p.slice.elements();
  EXPECT_NEAR(static_cast<double>(middle) / 1e6, 283.28, 0.01);
  std::size_t sums = 0;
  for (const Operation& o : stages[3].program.operations)
    if (o.kind == Operation::Kind::exchange && o.exchange.axis == Axis::data &&
        o.exchange.kind == Exchange::Kind::reduce_scatter)
      for (const Transfer& t : o.exchange.transfers) sums += 2 * t.count * 4;
  EXPECT_NEAR(static_cast<double>(sums) / 1048576, 1080.6, 0.1);
}

}  // namespace
}  // namespace trellis::train
