// Update rules: one step against its formula in f64, and every layout against one rank.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/ranks/runs.h"
#include "train/update/optimizer_state.h"
#include "train/whole/rank_step.h"

namespace trellis::train {
namespace {

StepConfig with_rule(const char* name) {
  StepConfig c = small_llama();
  c.optimizer.name = name;
  c.global_batch_size = 4;
  return c;
}

// A whole parameter's next value, from its value, its gradient and the weight decay.
using Formula = std::function<std::vector<double>(const std::vector<float>&, const std::vector<float>&, double)>;

void expect_first_step(StepConfig c, const Formula& next) {
  c.optimizer.clip = false;
  expect_on_threads(1, [&](ccl::Communicator& world) {
    Job job(c, world, 1);
    set_batches(job, 0);
    std::map<std::string, std::vector<float>> before;
    for (const OptimizerState& s : job.step().states) before[s.parameter->name] = job.values(*s.parameter);
    job.run({.step = 1, .learning_rate = 0.05});
    for (const OptimizerState& s : job.step().states) {
      const Parameter& p = *s.parameter;
      const auto expected = next(before[p.name], job.gradients(p), p.decays ? c.optimizer.weight_decay : 0);
      const auto after = job.values(p);
      for (std::size_t i = 0; i < after.size(); ++i)
        ASSERT_NEAR(after[i], expected[i], 2e-6 * (1 + std::fabs(expected[i]))) << p.name << " " << i;
    }
  });
}

TEST(UpdateRules, SgdWithNesterovsMomentum) {
  StepConfig c = with_rule("sgd");
  c.optimizer.nesterov = true;
  expect_first_step(c, [](const auto& p, const auto& g, double decay) {
    std::vector<double> out(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) out[i] = p[i] - 0.05 * 1.9 * (double{g[i]} + decay * p[i]);
    return out;
  });
}

TEST(UpdateRules, LambMovesByTheParametersLength) {
  const StepConfig c = with_rule("lamb");
  expect_first_step(c, [&](const auto& p, const auto& g, double decay) {
    std::vector<double> u(p.size()), out(p.size());
    double length = 0, steps = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      u[i] = g[i] / (std::fabs(double{g[i]}) + c.optimizer.epsilon) + decay * p[i];
      length += double{p[i]} * p[i], steps += u[i] * u[i];
    }
    const double trust = decay == 0 ? 1 : std::sqrt(length / steps);
    for (std::size_t i = 0; i < p.size(); ++i) out[i] = p[i] - 0.05 * trust * u[i];
    return out;
  });
}

void expect_same_on_every_layout(const StepConfig& c, double rate) {
  const RunOptions o{.learning_rate = rate};
  const Trained one = train_threads(c, 1, o);
  ASSERT_EQ(one.fault, "");
  EXPECT_LT(one.losses.back(), one.losses.front());
  struct Layout {
    Rank tensor, pipeline, data;
    bool zero;
  };
  for (const Layout& l : {Layout{2, 1, 1, false}, Layout{4, 1, 2, true}, Layout{1, 2, 2, true}, Layout{2, 2, 1, false},
                          Layout{1, 1, 4, false}}) {
    StepConfig many = c;
    many.strategy.tensor = l.tensor, many.strategy.pipeline = l.pipeline, many.strategy.zero1 = l.zero;
    const Trained t = train_threads(many, l.tensor * l.pipeline * l.data, o);
    ASSERT_EQ(t.fault, "");
    EXPECT_EQ(t.differing, "");
    for (std::size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(t.losses[i] / one.losses[i], 1, 1e-5);
    const auto [apart, which] = distance(one.parameters, t.parameters);
    EXPECT_LT(apart, 1e-5) << which << " T" << l.tensor << " P" << l.pipeline << " D" << l.data;
  }
}

TEST(UpdateRules, SgdTrainsAsOneRank) { expect_same_on_every_layout(with_rule("sgd"), 0.1); }

TEST(UpdateRules, LambTrainsAsOneRank) {
  StepConfig c = with_rule("lamb");
  c.model.tie_word_embeddings = true;
  expect_same_on_every_layout(c, 0.02);
}

TEST(UpdateRules, KeepMastersAndStochasticRounding) {
  for (const char* rule : {"sgd", "lamb"})
    for (const Precision p : {Precision::mixed, Precision::bf16_sr}) {
      StepConfig c = with_rule(rule);
      c.precision = p, c.strategy.zero1 = true;
      const Trained t = train_threads(c, 2, {.learning_rate = 0.05});
      EXPECT_EQ(t.fault + t.differing, "");
      EXPECT_LT(t.losses.back(), t.losses.front()) << rule;
    }
}

TEST(UpdateRules, AnUnknownOneIsRefused) {
  const std::string fault = train_threads(with_rule("adam"), 1).fault;
  EXPECT_NE(fault.find("model.optim.name is 'adam': expected one of adamw, "), std::string::npos) << fault;
  for (const char* known : {"lamb", "sgd"}) EXPECT_NE(fault.find(known), std::string::npos) << fault;
}

}  // namespace
}  // namespace trellis::train
