// What rounding does to training: updates below half a step of bf16 are lost to nearest, and kept on average by
// stochastic rounding.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/train/ranks/runs.h"

namespace trellis::train {
namespace {

// The mean loss of the last tenth of the steps.
double end_of(Precision precision) {
  StepConfig c = small_llama();
  c.model.num_layers = 2, c.global_batch_size = 4;
  c.precision = precision;
  c.optimizer.epsilon = 1e-8, c.optimizer.weight_decay = 0;
  const Trained t = train_threads(c, 1, {.steps = 300, .learning_rate = 1e-4});
  EXPECT_EQ(t.fault, "");
  return std::accumulate(t.losses.end() - 40, t.losses.end(), 0.0) / 40;
}

TEST(Rounding, StochasticFollowsF32WhereNearestStalls) {
  const double exact = end_of(Precision::fp32), stochastic = end_of(Precision::bf16_sr),
               nearest = end_of(Precision::bf16), masters = end_of(Precision::mixed);
  EXPECT_NEAR(stochastic / exact, 1, 0.01);
  EXPECT_NEAR(masters / exact, 1, 0.01);
  EXPECT_GT(nearest, 1.05 * exact);
  RecordProperty("losses", std::to_string(exact) + " " + std::to_string(stochastic) + " " + std::to_string(nearest));
}

}  // namespace
}  // namespace trellis::train
