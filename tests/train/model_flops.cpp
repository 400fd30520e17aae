// The FLOPs that MFU counts are those of the model, whatever the layout.
#include "train/whole/model_flops.h"

#include <gtest/gtest.h>

#include "tests/train/pipelined.h"
#include "train/whole/compact_step.h"

namespace trellis::train {
namespace {

double flops_of(const StepConfig& c, Rank world) { return compact_step(c, world, false).flops; }

// Three times those of the forward passes: two for each weight and token, and causal attention's halves.
double by_hand(const StepConfig& c) {
  const ModelConfig& m = c.model;
  const auto hidden = static_cast<double>(m.hidden_size),
             tokens = static_cast<double>(c.seq_length * c.global_batch_size);
  const auto query = static_cast<double>(m.num_attention_heads * m.head_size()),
             key = static_cast<double>(m.kv_heads() * m.head_size()), inner = static_cast<double>(m.inner());
  const bool experts = c.experts.experts > 0;
  const double perceptron = 3 * hidden * inner * static_cast<double>(experts ? c.experts.top_k : 1);
  const double layer = 2 * hidden * (query + key) + perceptron + hidden * static_cast<double>(c.experts.experts);
  const double weights = static_cast<double>(m.num_layers) * layer + hidden * static_cast<double>(m.vocab_size);
  const double attention = static_cast<double>(c.seq_length * m.num_layers) * query;
  return 6 * tokens * (weights + attention);
}

StepConfig with_experts(double capacity_factor) {
  StepConfig c = pipelined(1, 1, 1);
  c.model.architecture = "mixtral", c.model.tie_word_embeddings = false;
  c.experts = {.experts = 8, .capacity_factor = capacity_factor};
  return c;
}

TEST(ModelFlops, AreTheSameInEveryLayout) {
  for (const Rank tensor : {1, 2, 4})
    for (const Rank pipeline : {1, 2})
      for (const Rank context : {1, 2})
        for (const bool sequence : {false, true}) {
          StepConfig c = pipelined(tensor, pipeline, 1);
          c.strategy.context = context, c.strategy.sequence_parallel = sequence && tensor > 1;
          EXPECT_NEAR(flops_of(c, 2 * tensor * pipeline * context) / by_hand(c), 1, 1e-9)
              << "T" << tensor << " P" << pipeline << " C" << context << " SP " << sequence;
        }
}

// With 32 tensor ranks, each head of keys and values is projected by four of them.
TEST(ModelFlops, OfLlama3AreTheSameForCopiesOfKeysAndValues) {
  StepConfig c = pipelined(1, 1, 1);
  c.model = {.vocab_size = 128256,
             .hidden_size = 8192,
             .num_layers = 2,
             .num_attention_heads = 64,
             .num_key_value_heads = 8,
             .intermediate_size = 28672};
  c.seq_length = 8192, c.global_batch_size = 8, c.recompute = Recompute::selective;
  for (const Rank tensor : {8, 16, 32, 64}) {
    c.strategy.tensor = tensor, c.strategy.sequence_parallel = true;
    EXPECT_NEAR(flops_of(c, 64) / by_hand(c), 1, 1e-9) << "T" << tensor;
  }
}

TEST(ModelFlops, LeaveOutEmptyRowsOfExperts) {
  for (const double factor : {0.0, 1.0, 2.0, 4.0})
    for (const Rank tensor : {1, 2})
      for (const Rank expert : {1, 2}) {
        StepConfig c = with_experts(factor);
        c.strategy.tensor = tensor, c.strategy.sequence_parallel = tensor > 1, c.strategy.expert = expert;
        EXPECT_NEAR(flops_of(c, 2 * tensor) / by_hand(c), 1, 1e-9) << factor << " T" << tensor << " E" << expert;
      }
}

// Tokens that an expert has no room for are not computed.
TEST(ModelFlops, LeaveOutTokensThatExpertsDrop) {
  const StepConfig all = with_experts(1), half = with_experts(0.5);
  const double experts = 6.0 * 16 * 16 * 8 * 2 * 3 * 32 * 48;
  EXPECT_NEAR((flops_of(all, 1) - flops_of(half, 1)) / (experts / 2), 1, 1e-9);
}

TEST(ModelFlops, LeaveOutWhatRoundingAndRecomputationTake) {
  for (const Precision precision : {Precision::fp32, Precision::autocast, Precision::fp8, Precision::mxfp8})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      StepConfig c = pipelined(2, 1, 1);
      c.precision = precision, c.recompute = recompute;
      EXPECT_NEAR(flops_of(c, 2) / by_hand(c), 1, 1e-9) << name(precision) << ", " << name(recompute);
    }
}

// Adapters have a factor that every tensor rank has whole.
TEST(ModelFlops, OfAdaptersAndOfBertAreTheSameOnAnyTensorRanks) {
  for (const bool bert : {false, true}) {
    StepConfig c = pipelined(1, 1, 1);
    if (bert)
      c.model.architecture = "bert", c.model.num_key_value_heads = 4;
    else
      c.lora = {.rank = 4, .targets = {"q_proj", "v_proj", "o_proj", "down_proj"}}, c.model.tie_word_embeddings = false;
    const double alone = flops_of(c, 1);
    EXPECT_GT(alone, 0);
    for (const Rank tensor : {2, 4})
      for (const bool sequence : {false, true}) {
        c.strategy.tensor = tensor, c.strategy.sequence_parallel = sequence;
        EXPECT_NEAR(flops_of(c, tensor) / alone, 1, 1e-9) << (bert ? "BERT" : "adapters") << " T" << tensor;
      }
  }
}

}  // namespace
}  // namespace trellis::train
