// The step as a value: its proof, its memory, its buckets, and what an intruder may do to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "sim/workload/chakra.h"
#include "train/step/memory_plan.h"
#include "train/update/buckets.h"
#include "train/update/exchange.h"
#include "train/whole/chakra.h"
#include "train/whole/check.h"
#include "train/whole/export.h"

namespace trellis::train {
namespace {

Config pipelined(Rank tensor, Rank pipeline, Rank chunks, const char* schedule = "") {
  Config c;
  c.model = {.vocab_size = 64,
             .hidden_size = 32,
             .num_layers = 8,
             .num_attention_heads = 4,
             .num_key_value_heads = 2,
             .intermediate_size = 48,
             .tie_word_embeddings = true};
  c.strategy = {.tensor = tensor,
                .pipeline = pipeline,
                .virtual_pipeline = chunks,
                .sequence_parallel = tensor > 1,
                .zero1 = true,
                .schedule = schedule};
  c.seq_length = 16, c.global_batch_size = 16;
  return c;
}

TEST(StepValue, EverySortIsProved) {
  for (const auto& [chunks, schedule] :
       {std::pair{1, "1f1b"}, {1, "gpipe"}, {1, "zb-h1"}, {2, "interleaved"}, {2, "zb-v"}})
    for (Rank tensor : {1, 2, 4}) {
      const Config c = pipelined(tensor, 4, chunks, schedule);
      EXPECT_EQ(check_step(c, 8 * tensor, stages_of(c, 8 * tensor)), "") << schedule << " T" << tensor;
    }
}

TEST(StepValue, AllRanksOfAStageDoTheSame) {
  const Config c = pipelined(2, 2, 1);
  const std::vector<Step> stages = stages_of(c, 8);
  const Mesh& mesh = stages[0].mesh;
  for (Rank r = 0; r < 8; ++r) {
    const Step own = lay_out(c, 8, r);
    const Program& like = stages[static_cast<std::size_t>(mesh.place(r).pipeline)].program;
    ASSERT_EQ(own.program.operations.size(), like.operations.size());
    for (std::size_t i = 0; i < like.operations.size(); ++i) {
      EXPECT_EQ(own.program.operations[i].name, like.operations[i].name);
      EXPECT_EQ(own.program.bytes_exchanged(own.program.operations[i]), like.bytes_exchanged(like.operations[i]));
    }
  }
}

// A message is lost, changes its size or its label, or changes places with the next one.
TEST(StepValue, DamageToMessagesIsCaught) {
  std::mt19937 random(3);
  int caught = 0, done = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<Step> stages = stages_of(pipelined(1, 4, 1), 4);
    Program& p = stages[random() % 4].program;
    std::vector<std::size_t> messages;
    for (std::size_t o = 0; o < p.operations.size(); ++o)
      if (p.operations[o].kind == Operation::Kind::exchange && p.operations[o].exchange.axis == Axis::pipeline)
        messages.push_back(o);
    const std::size_t at = messages[random() % messages.size()];
    Exchange& e = p.operations[at].exchange;
    const int kind = i % 4;
    if (kind == 0) p.operations.erase(p.operations.begin() + static_cast<std::ptrdiff_t>(at));
    if (kind == 1) ++e.transfers[0].count;
    if (kind == 2) e.transfers[0].type = DType::bf16;
    if (kind == 3) {
      if (e.kind != Exchange::Kind::send && e.kind != Exchange::Kind::receive) continue;
      e.label += 2;
    }
    std::vector<const Program*> programs;
    for (const Step& s : stages) programs.push_back(&s.program);
    ++done;
    const std::string fault = check_pipeline(programs);
    caught += !fault.empty();
    EXPECT_NE(fault, "") << "kind " << kind << ", operation " << at;
  }
  EXPECT_EQ(caught, done);
}

TEST(StepValue, TwoSendersThatWaitForEachOtherAreCaught) {
  std::vector<Step> stages = stages_of(pipelined(1, 2, 1), 2);
  // Stage 0 sends its second activation before it takes the first gradient, while stage 1 sends that.
  auto& operations = stages[0].program.operations;
  std::size_t receive = operations.size(), send = receive;
  for (std::size_t i = 0; i < operations.size() && send == operations.size(); ++i) {
    if (operations[i].kind != Operation::Kind::exchange) continue;
    if (operations[i].exchange.kind == Exchange::Kind::receive) receive = i;
    if (operations[i].exchange.kind == Exchange::Kind::send && receive < i) send = i;
  }
  ASSERT_LT(send, operations.size());
  std::swap(operations[receive], operations[send]);
  const std::string fault = check_pipeline({&stages[0].program, &stages[1].program});
  EXPECT_NE(fault.find("waits for ever"), std::string::npos) << fault;
}

TEST(StepValue, TensorsThatAreAliveTogetherDoNotOverlap) {
  const Step step = lay_out(pipelined(2, 2, 2, "zb-v"), 8, 3);
  const Program& p = step.program;
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
  EXPECT_GE(plan.bytes, plan.peak);
  EXPECT_LT(static_cast<double>(plan.bytes), 1.35 * static_cast<double>(plan.peak));
}

TEST(StepValue, RecomputingAndZeroSaveMemory) {
  Config c = pipelined(1, 1, 1);
  c.seq_length = 64, c.global_batch_size = 2, c.strategy.zero1 = false;
  const auto activations = [&] {
    return plan_memory(lay_out(c, 2, 0).program).at_peak[static_cast<std::size_t>(Category::activation)];
  };
  const auto moments = [&] {
    return plan_memory(lay_out(c, 2, 0).program).at_peak[static_cast<std::size_t>(Category::moment)];
  };
  const std::size_t none = activations(), whole = moments();
  c.recompute = Recompute::selective;
  const std::size_t selective = activations();
  c.recompute = Recompute::full;
  EXPECT_LT(selective, none);
  EXPECT_LT(2 * activations(), none);
  c.strategy.zero1 = true;
  EXPECT_NEAR(static_cast<double>(moments()), static_cast<double>(whole) / 2, 0.01 * static_cast<double>(whole));
}

// What is written reads back, with the same work for each rank, and every exchange has all its ends.
TEST(StepValue, IsAWorkloadAsTextAndAsChakraTraces) {
  for (const auto& [chunks, schedule] : {std::pair{1, "1f1b"}, {2, "zb-v"}}) {
    const std::vector<Step> stages = stages_of(pipelined(4, 2, chunks, schedule), 16);
    const sim::Workload text = sim::read_workload("step", workload_text(stages));
    std::vector<std::string> traces, names;
    for (Rank r = 0; r < 16; ++r) traces.push_back(chakra_trace(stages, r)), names.push_back(std::to_string(r));
    std::vector<sim::ChakraFile> files;
    for (std::size_t r = 0; r < 16; ++r) files.push_back({names[r], traces[r]});
    const sim::Workload chakra = sim::read_chakra("step", files);
    const auto total = [](const sim::Workload& w) {
      double flops = 0;
      for (const sim::Part& p : w.parts)
        if (p.kind == sim::Part::Kind::compute)
          for (std::uint32_t cell : p.cells) flops += p.flops * static_cast<double>(w.cells[cell].ranks.size());
      return flops;
    };
    double flops = 0;
    for (const Step& s : stages)
      for (const Operation& o : s.program.operations) flops += 8 * std::floor(o.flops);
    EXPECT_NEAR(total(text) / flops, 1, 1e-6) << schedule;
    EXPECT_NEAR(total(chakra) / flops, 1, 1e-6) << schedule;
  }
}

TEST(Buckets, FollowTheirRules) {
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(all_reduce_buckets(Sizes{4, 4, 4, 20, 1}, 10), (std::vector<Bucket>{{0, 1}, {2}, {3}, {4}}));
  EXPECT_EQ(all_reduce_buckets(Sizes{10, 1}, 10), (std::vector<Bucket>{{0}, {1}}));
  // 12 alone passes the cap of 10; 4 pending is under half of it, and 16 at most twice: together.
  EXPECT_EQ(reduce_scatter_buckets(Sizes{4, 12, 3}, 10), (std::vector<Bucket>{{0, 1}, {2}}));
  EXPECT_EQ(reduce_scatter_buckets(Sizes{6, 12, 3}, 10), (std::vector<Bucket>{{0}, {1}, {2}}));
  EXPECT_EQ(reduce_scatter_buckets(Sizes{4, 5, 6}, 10), (std::vector<Bucket>{{0, 1}, {2}}));
}

TEST(Buckets, CapsByPrecision) {
  Config c;
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
  Config c = pipelined(1, 4, 1);
  c.strategy.cuts = {0, 1, 5};
  EXPECT_EQ(derive(c, 4).stage_of_layer, (std::vector<std::size_t>{0, 1, 2, 2, 2, 2, 3, 3}));
  c.strategy.cuts = {0, 1};
  EXPECT_THROW(derive(c, 4), std::invalid_argument);
  c.strategy.cuts = {0, 1, 7};
  EXPECT_THROW(derive(c, 4), std::invalid_argument);
}

// Llama-3-70B: the sizes of training.md's worked example, and time to lay it out.
TEST(StepValue, SeventyBillionParametersOn512Ranks) {
  Config c;
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
  const std::vector<Step> stages = stages_of(c, 512);
  EXPECT_EQ(check_step(c, 512, stages), "");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 20) << "seconds";
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
