// What attention without flash holds on an accelerator: for each head of a layer an array of all pairs of queries and
// keys, kept for the backward pass, and in that pass another one. Nothing of it is on the machine that trains here.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schedule/graph/attention_arrays.h"
#include "schedule/graph/peak_memory.h"
#include "sim/cluster/operation/operation_model.h"
#include "sim/hardware/chip/chip.h"
#include "tests/train/pipelined.h"
#include "train/cache/proof.h"
#include "train/step/memory_plan.h"
#include "train/whole/check.h"
#include "train/whole/compact_step.h"
#include "train/whole/graph.h"

namespace trellis::train {
namespace {

// 4 heads of 512 x 512 pairs in f32.
constexpr std::size_t sequence = 512, pairs = 4 * sequence * sequence * 4;

StepConfig long_sequences(Rank tensor, Rank pipeline, Recompute recompute) {
  StepConfig c = pipelined(tensor, pipeline, 1, "1f1b");
  c.seq_length = sequence, c.recompute = recompute;
  return c;
}

// The most that each class holds of these arrays at once, in bytes.
std::vector<std::size_t> held(const StepConfig& c, Rank world) {
  schedule::ExecutionGraph graph = graph_of(classes_of(c, world));
  std::vector<std::size_t> most;
  for (schedule::RankClass& of : graph.classes) {
    for (schedule::GraphTensor& t : of.tensors)
      if (graph.categories[t.category].name != "accelerator") t.rows = 0;
    most.push_back(schedule::peak_memory(graph, of).bytes);
  }
  return most;
}

std::size_t whole(StepConfig c, bool flash) {
  c.flash_attention = flash;
  return compact_step(c, c.strategy.ranks_of_model()).memory[0].bytes;
}

using Bytes = std::vector<std::size_t>;

TEST(AttentionMemory, EachLayerKeepsItsProbabilities) {
  // All 8 layers' arrays when the last layer's backward pass has one more.
  EXPECT_EQ(held(long_sequences(1, 1, Recompute::none), 1), Bytes{9 * pairs});
  EXPECT_EQ(held(long_sequences(2, 1, Recompute::none), 2), Bytes{9 * pairs / 2});
  // Two layers a stage; 1F1B has 4 micro-batches in flight on the first stage, and one on the last.
  EXPECT_EQ(held(long_sequences(1, 4, Recompute::none), 4), (Bytes{9 * pairs, 7 * pairs, 5 * pairs, 3 * pairs}));
}

TEST(AttentionMemory, RecomputationHoldsThoseOfOneLayer) {
  for (const Recompute r : {Recompute::selective, Recompute::full}) {
    EXPECT_EQ(held(long_sequences(1, 1, r), 1), Bytes{2 * pairs});
    EXPECT_EQ(held(long_sequences(1, 4, r), 4), Bytes(4, 2 * pairs));
  }
  // Layer 2 alone is computed again: the other 7 layers' arrays are kept, and the last one's backward pass has one
  // more.
  StepConfig some = long_sequences(1, 1, Recompute::full);
  some.recompute_layers = {2};
  EXPECT_EQ(held(some, 1), Bytes{8 * pairs});
}

TEST(AttentionMemory, ContextRanksHaveTheirOwnQueries) {
  StepConfig c = long_sequences(1, 1, Recompute::none);
  c.strategy.context = 2;
  // Half of the queries. A ring's operation has half of the keys, and so has the array of its backward pass.
  EXPECT_EQ(held(c, 2), Bytes{8 * pairs / 2 + pairs / 4});
  c.strategy.ring_attention = false;
  EXPECT_EQ(held(c, 2), Bytes{9 * pairs / 2});
  c.recompute = Recompute::selective;
  EXPECT_EQ(held(c, 2), Bytes{2 * pairs / 2});
}

TEST(AttentionMemory, FollowsTheTypeOfQueries) {
  StepConfig c = long_sequences(1, 1, Recompute::none);
  c.precision = Precision::autocast;
  EXPECT_EQ(held(c, 1), Bytes{9 * pairs / 2});
  c.flash_attention = true;
  EXPECT_EQ(held(c, 1), Bytes{0});
}

TEST(AttentionMemory, CountsInTheWholeOfARank) {
  for (const auto& [recompute, arrays] :
       {std::pair{Recompute::none, 9}, {Recompute::selective, 2}, {Recompute::full, 2}}) {
    const StepConfig c = long_sequences(1, 1, recompute);
    const auto more = static_cast<double>(whole(c, false) - whole(c, true));
    EXPECT_NEAR(more / static_cast<double>(pairs), arrays, 0.5) << name(recompute);
  }
  // 16 heads of 8,192 tokens in bf16: 2.15 GB a layer.
  StepConfig c = pipelined(1, 1, 1);
  c.model.num_attention_heads = c.model.num_key_value_heads = 16;
  c.precision = Precision::autocast, c.seq_length = 8192, c.global_batch_size = 1;
  const auto more = static_cast<double>(whole(c, false) - whole(c, true));
  EXPECT_NEAR(more / 9, 2147483648.0, 0.03 * 2147483648.0);
}

TEST(AttentionMemory, IsNotOfThisMachine) {
  StepConfig c = long_sequences(1, 1, Recompute::none);
  const std::size_t bytes = plan_memory(lay_out(c, 1, 0).program).bytes;
  const Proof proof = prove(c, 1);
  c.flash_attention = true;
  EXPECT_EQ(plan_memory(lay_out(c, 1, 0).program).bytes, bytes);
  EXPECT_EQ(prove(c, 1).peaks[0].by_category, proof.peaks[0].by_category);
}

// The time of the core has as many passes over these arrays as their list says.
TEST(AttentionMemory, IsWhatTheTimeReadsAndWrites) {
  const sim::EngineRates rates(sim::chip_named("trn2").figures());
  schedule::OperationShape s{.kind = "attention", .rows = 512, .columns = 512, .inner = 64, .batch = 4};
  const auto spilled = [&](const char* kind) {
    s.kind = kind, s.flash = false;
    const double all = sim::operation_time(s, rates).engines.bytes;
    s.flash = true;
    return (all - sim::operation_time(s, rates).engines.bytes) / (4 * 512 * 512 * 2);
  };
  EXPECT_DOUBLE_EQ(spilled("attention"), 2);
  EXPECT_DOUBLE_EQ(spilled("attention_gradient"), 5);
  double forward = 0, backward = 0, kept = 0;
  for (const schedule::PairArray& a : schedule::pair_arrays)
    forward += a.forward, backward += a.backward, kept += a.kept() ? 1 : 0;
  EXPECT_EQ(forward, 2);
  EXPECT_EQ(backward, 5);
  EXPECT_EQ(kept, 1);
}

}  // namespace
}  // namespace trellis::train
