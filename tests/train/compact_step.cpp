// A compact step has the length of its schedule, and the same memory, time and proof as a step whose every micro-batch
// is laid out.
#include "train/whole/compact_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "schedule/graph/match_exchanges.h"
#include "sim/cluster/workload/step_price.h"
#include "train/pipeline/forward_then_backward.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"

namespace trellis::train {
namespace {

struct Case {
  Rank tensor, pipeline, data, chunks;
  const char* schedule;
  std::size_t micro_batches;
  std::size_t layers = 8;
  std::size_t heads = 4;
  bool zero1 = true, tied = false;
};

StepConfig config_of(const Case& c) {
  StepConfig out;
  out.model = {.vocab_size = 64,
               .hidden_size = 16 * c.heads,
               .num_layers = c.layers,
               .num_attention_heads = c.heads,
               .num_key_value_heads = c.heads,
               .intermediate_size = 96,
               .tie_word_embeddings = c.tied};
  out.strategy = {.tensor = c.tensor,
                  .pipeline = c.pipeline,
                  .virtual_pipeline = c.chunks,
                  .sequence_parallel = c.tensor > 1,
                  .zero1 = c.zero1,
                  .schedule = c.schedule};
  out.precision = Precision::mixed;
  out.recompute = Recompute::selective;
  out.seq_length = 32, out.global_batch_size = c.micro_batches * static_cast<std::size_t>(c.data);
  return out;
}

class Compact : public testing::TestWithParam<Case> {};

TEST_P(Compact, HasTheTimeAndTheMemoryOfTheWholeStep) {
  const Case& c = GetParam();
  const StepConfig config = config_of(c);
  const Rank world = c.tensor * c.pipeline * c.data;
  const std::vector<RankStep> steps = classes_of(config, world);
  const schedule::ExecutionGraph whole = graph_of(steps);
  const CompactStep compact = compact_step(config, world);
  EXPECT_EQ(compact.fault, "");
  EXPECT_EQ(schedule::match(compact.graph).fault, "");
  ASSERT_EQ(compact.graph.classes.size(), whole.classes.size());
  std::size_t tasks = 0, all = 0;
  for (std::size_t i = 0; i < whole.classes.size(); ++i) {
    EXPECT_EQ(compact.graph.classes[i].ranks, whole.classes[i].ranks);
    const schedule::PeakMemory expected = schedule::peak_memory(whole, whole.classes[i]);
    EXPECT_EQ(compact.memory[i].bytes, expected.bytes) << "class " << i;
    EXPECT_EQ(compact.memory[i].by_category, expected.by_category) << "class " << i;
    tasks += compact.graph.classes[i].tasks.size(), all += whole.classes[i].tasks.size();
  }
  // If the heads are not shared out evenly, other classes take part in each pass, so that no pass can become one task.
  if (c.micro_batches > 6 && c.heads % static_cast<std::size_t>(c.tensor) == 0) {
    EXPECT_LT(tasks, all);
  }

  const sim::Machine machine = sim::machine_named("trn1.32xlarge");
  const sim::StepFactors factors = sim::factors_of(whole, machine, {});
  const sim::StepPrice expected = sim::StepPricer(whole, machine).price(factors);
  const sim::StepPrice price = sim::StepPricer(compact.graph, machine, {}, compact.stretches).price(factors);
  EXPECT_EQ(price.time, expected.time);
  for (std::size_t i = 0; i < whole.classes.size(); ++i) {
    EXPECT_EQ(price.classes[i].compute, expected.classes[i].compute) << "class " << i;
    EXPECT_EQ(price.classes[i].exposed, expected.classes[i].exposed) << "class " << i;
    EXPECT_EQ(price.classes[i].engines, expected.classes[i].engines) << "class " << i;
    EXPECT_EQ(price.classes[i].idle, expected.classes[i].idle) << "class " << i;
  }
  const auto sum = [](const sim::StepPrice& p) {
    std::int64_t count = 0;
    for (const sim::ExchangePrice& e : p.exchanges) count += e.count;
    return count;
  };
  EXPECT_EQ(sum(price), sum(expected));
}

INSTANTIATE_TEST_SUITE_P(
    Steps, Compact,
    testing::Values(Case{1, 1, 4, 1, "", 1}, Case{1, 1, 4, 1, "", 2}, Case{2, 1, 4, 1, "", 3}, Case{2, 1, 4, 1, "", 9},
                    Case{2, 4, 2, 1, "1f1b", 12}, Case{2, 4, 2, 1, "1f1b", 3}, Case{2, 4, 2, 1, "gpipe", 10},
                    Case{2, 4, 2, 1, "zb-h1", 12}, Case{2, 4, 2, 2, "interleaved", 12}, Case{2, 4, 2, 2, "zb-v", 12},
                    Case{2, 4, 2, 2, "zb-v", 5}, Case{1, 8, 1, 1, "1f1b", 20}, Case{2, 4, 2, 1, "1f1b", 12, 10},
                    Case{4, 2, 2, 1, "1f1b", 8, 8, 6}, Case{2, 4, 2, 1, "1f1b", 12, 8, 4, false, true},
                    Case{2, 2, 2, 4, "interleaved", 8}));

TEST(InTurn, HasEverySlotOfTheSchedule) {
  for (const auto& [name, rule] : pipeline_rules())
    for (std::int32_t chunks : {1, 2}) {
      const PipelineShape shape{4, chunks, 8};
      if (!rule.misfit(shape).empty()) continue;
      const PipelineSchedule order = pipeline_schedule(name, shape);
      PipelineSchedule turns = in_turn(order, 8);
      for (std::size_t r = 0; r < order.ranks.size(); ++r) {
        auto a = order.ranks[r], b = turns.ranks[r];
        const auto key = [](const Slot& s) { return std::tuple(s.action, s.micro, s.chunk); };
        std::ranges::sort(a, {}, key), std::ranges::sort(b, {}, key);
        EXPECT_EQ(a, b) << name << " rank " << r;
      }
    }
}

}  // namespace
}  // namespace trellis::train
