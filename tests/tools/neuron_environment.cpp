// Neuron's environment variables, as a training job takes them.
#include "tools/train/neuron_environment.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace trellis::tools {
namespace {

using Variables = std::map<std::string, std::string>;

std::vector<std::string> applied(train::JobConfig& job, const Variables& variables) {
  return apply_neuron_environment(job, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(NeuronEnvironment, CastsDecideThePrecision) {
  const auto precision = [](const Variables& v, train::Precision before = train::Precision::fp32) {
    train::JobConfig job;
    job.step.precision = before;
    applied(job, v);
    return job.step.precision;
  };
  EXPECT_EQ(precision({}), train::Precision::fp32);
  EXPECT_EQ(precision({{"XLA_USE_BF16", "1"}}), train::Precision::bf16_sr);
  EXPECT_EQ(precision({{"XLA_USE_BF16", "1"}, {"NEURON_RT_STOCHASTIC_ROUNDING_EN", "0"}}), train::Precision::bf16);
  EXPECT_EQ(precision({{"XLA_DOWNCAST_BF16", "1"}}), train::Precision::mixed_sr);
  EXPECT_EQ(precision({{"NEURON_RT_STOCHASTIC_ROUNDING_EN", "1"}}, train::Precision::bf16), train::Precision::bf16_sr);
  EXPECT_THROW(precision({{"XLA_USE_BF16", "1"}, {"XLA_DOWNCAST_BF16", "1"}}), std::invalid_argument);
  EXPECT_THROW(precision({{"XLA_USE_BF16", "1"}}, train::Precision::mixed), std::invalid_argument);
  EXPECT_THROW(precision({{"XLA_USE_BF16", "2"}}), std::invalid_argument);
}

TEST(NeuronEnvironment, RoundingThatHasNoEffectIsSaid) {
  train::JobConfig job;
  job.step.precision = train::Precision::fp32;
  EXPECT_EQ(applied(job, {{"NEURON_RT_STOCHASTIC_ROUNDING_EN", "1"}}),
            std::vector<std::string>{"NEURON_RT_STOCHASTIC_ROUNDING_EN: has no effect with precision.type fp32"});
  job.step.precision = train::Precision::bf16_sr;
  EXPECT_TRUE(applied(job, {{"NEURON_RT_STOCHASTIC_ROUNDING_EN", "1"}}).empty());
}

TEST(NeuronEnvironment, BucketsAndSeedAndWhatHasNoEffect) {
  train::JobConfig job;
  job.step.strategy.zero1 = true;
  const auto notes = applied(job, {{"ALLREDUCE_BUCKET_CAP_MB", "7"},
                                   {"ALL_GATHER_REDUCE_SCATTER_BUCKET_CAP_MB", "9"},
                                   {"NEURON_RT_STOCHASTIC_ROUNDING_SEED", "5"},
                                   {"NEURON_CC_FLAGS", "-O1"}});
  EXPECT_EQ(job.step.optimizer.bucket_mb, 9U);
  EXPECT_EQ(job.step.seed, 5U);
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_EQ(notes[2], "NEURON_CC_FLAGS: has no effect here: nothing is compiled; --cache_dir alone is heeded");
}

}  // namespace
}  // namespace trellis::tools
