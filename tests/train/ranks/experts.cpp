// Mixtures of experts: the same training on every layout, with a capacity and without; which tokens are dropped; how
// biases move.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/folder.h"
#include "tests/train/ranks/runs.h"
#include "tests/why.h"
#include "train/checkpoint/reshard.h"
#include "train/checkpoint/save_load.h"
#include "train/layers/experts/routing.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"

namespace trellis::train {
namespace {

StepConfig small_mixtral() {
  StepConfig c = small_llama();
  c.model.architecture = "mixtral", c.model.intermediate_size = 24;
  c.experts = {.experts = 4, .top_k = 2, .balance = 0.02};
  return c;
}

StepConfig deepseek() {
  StepConfig c = small_mixtral();
  c.model.architecture = "deepseek_moe";
  c.experts = {.experts = 8,
               .top_k = 2,
               .first_layer = 1,
               .shared = 1,
               .score = RouterScore::sigmoid,
               .scale = 2.5,
               .groups = 4,
               .top_groups = 2,
               .balance = 0.001,
               .bias = true};
  return c;
}

// data: data-parallel ranks, of which `expert` share out the experts.
StepConfig laid_out(StepConfig c, StrategyConfig s, Rank data, Recompute recompute = Recompute::none) {
  c.strategy = std::move(s);
  c.recompute = recompute;
  c.global_batch_size = 4 * static_cast<std::size_t>(data);
  return c;
}

Rank ranks_of(const StepConfig& c) {
  return c.strategy.tensor * c.strategy.pipeline * static_cast<Rank>(c.global_batch_size / 4);
}

std::string words(const StrategyConfig& s) {
  return fmt::format("T{} P{} V{} E{}{}{} {}", s.tensor, s.pipeline, s.virtual_pipeline, s.expert,
                     s.sequence_parallel ? " SP" : "", s.zero1 ? " ZeRO" : "", s.schedule);
}

std::vector<StepConfig> layouts(const StepConfig& c) {
  return {
      laid_out(c, {.expert = 2}, 2),
      laid_out(c, {.expert = 4, .zero1 = true}, 4),
      laid_out(c, {.tensor = 2, .expert = 2, .sequence_parallel = true, .zero1 = true}, 4, Recompute::full),
      laid_out(c, {.tensor = 2, .pipeline = 2, .expert = 2}, 4, Recompute::selective),
      laid_out(c, {.pipeline = 2, .virtual_pipeline = 2, .expert = 2, .zero1 = true}, 2),
      laid_out(c, {.pipeline = 2, .expert = 2, .zero1 = true, .schedule = "zb-h1"}, 4),
      laid_out(c, {.tensor = 4, .sequence_parallel = true}, 1),
      laid_out(c, {.tensor = 2, .expert = 1, .zero1 = true}, 2),
  };
}

void expect_same(const StepConfig& many, double tolerance) {
  StepConfig one = many;
  one.strategy = {}, one.recompute = Recompute::none;
  const std::string what =
      fmt::format("{} {} D{}", many.model.architecture, words(many.strategy), many.global_batch_size / 4);
  const Trained a = train_threads(many, ranks_of(many), {.steps = 4}), b = train_threads(one, 1, {.steps = 4});
  ASSERT_EQ(a.fault + b.fault, "") << what;
  EXPECT_EQ(a.differing, "") << what;
  for (std::size_t i = 0; i < b.losses.size(); ++i) {
    EXPECT_NEAR(a.losses[i] / b.losses[i], 1, tolerance) << what << ", step " << i;
    EXPECT_NEAR(a.norms[i] / b.norms[i], 1, 10 * tolerance) << what << ", step " << i;
  }
  const auto [apart, which] = distance(b.parameters, a.parameters);
  EXPECT_LT(apart, tolerance) << what << ": " << which;
}

void expect_same_on_every_layout(const StepConfig& c, double tolerance) {
  for (const StepConfig& many : layouts(c)) expect_same(many, tolerance);
}

// Every combination on up to 16 ranks; tools/soak train runs it.
TEST(Soak, DISABLED_ExpertsOnEveryLayout) {
  int done = 0;
  for (Rank tensor : {1, 2, 4})
    for (Rank pipeline : {1, 2})
      for (Rank data : {1, 2, 4, 8})
        for (Rank expert = 1; expert <= std::min<Rank>(data, 4); expert *= 2)
          for (int bits = 0; bits < 8; ++bits) {
            if (tensor * pipeline * data > 16 || ((bits & 1) != 0 && tensor == 1)) continue;
            StepConfig c = (bits & 4) != 0 ? deepseek() : small_mixtral();
            c.experts.capacity_factor = (bits & 2) != 0 ? 1.25 : 0;
            expect_same(laid_out(c,
                                 {.tensor = tensor,
                                  .pipeline = pipeline,
                                  .expert = expert,
                                  .sequence_parallel = (bits & 1) != 0,
                                  .zero1 = (bits & 2) == 0},
                                 data, static_cast<Recompute>(bits % 3)),
                        1e-5);
            ++done;
          }
  EXPECT_GT(done, 150);
}

TEST(Experts, TrainAsOnOneRankOnEveryLayout) { expect_same_on_every_layout(small_mixtral(), 1e-5); }

TEST(Experts, WithACapacityTrainAsOnOneRank) {
  StepConfig c = small_mixtral();
  c.experts.capacity_factor = 1;  // some tokens are dropped
  expect_same_on_every_layout(c, 1e-5);
}

TEST(Experts, OfDeepSeekTrainAsOnOneRank) { expect_same_on_every_layout(deepseek(), 1e-5); }

TEST(Experts, ACapacityForAllIsNone) {
  StepConfig c = small_mixtral(), limited = c, tight = c;
  limited.experts.capacity_factor = 2;  // 4 experts, 2 a token: each has room for all tokens
  tight.experts.capacity_factor = 0.5;
  const Trained a = train_threads(c, 1), b = train_threads(limited, 1), d = train_threads(tight, 1);
  ASSERT_EQ(a.fault + b.fault + d.fault, "");
  EXPECT_LT(distance(a.parameters, b.parameters).first, 1e-6);
  EXPECT_GT(distance(a.parameters, d.parameters).first, 1e-3) << "nothing was dropped";
}

TEST(Experts, OtherRulesAndTypesKeepReplicasEqual) {
  for (const char* rule : {"lamb", "sgd"}) {
    StepConfig c = small_mixtral();
    c.optimizer.name = rule;
    const StepConfig many = laid_out(c, {.tensor = 2, .expert = 2, .sequence_parallel = true, .zero1 = true}, 4);
    StepConfig one = many;
    one.strategy = {};
    const Trained a = train_threads(many, 8, {.steps = 3}), b = train_threads(one, 1, {.steps = 3});
    ASSERT_EQ(a.fault + b.fault, "") << rule;
    EXPECT_EQ(a.differing, "") << rule;
    EXPECT_LT(distance(b.parameters, a.parameters).first, 1e-5) << rule;
  }
  for (Precision p : {Precision::bf16_sr, Precision::mixed, Precision::autocast}) {
    StepConfig c = small_mixtral();
    c.precision = p;
    const StepConfig many = laid_out(c, {.tensor = 2, .expert = 2, .sequence_parallel = true, .zero1 = true}, 2);
    StepConfig one = many;
    one.strategy = {};
    const Trained a = train_threads(many, 4, {.steps = 4}), b = train_threads(one, 1, {.steps = 4});
    ASSERT_EQ(a.fault + b.fault, "") << name(p);
    EXPECT_EQ(a.differing, "") << name(p);
    for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i] / b.losses[i], 1, 0.03) << name(p);
  }
}

// The balance loss and the biases make the load of experts more even.
TEST(Experts, BiasesFollowTheLoad) {
  StepConfig c = deepseek();
  c.model.num_layers = 2, c.experts.balance = 0, c.experts.bias_rate = 0.01;
  expect_on_threads(1, [&](ccl::Communicator& w) {
    Job job(c, w);
    const Parameter& bias = *job.parameters().find("model.layers.1.mlp.gate.e_score_correction_bias");
    EXPECT_EQ(job.step().program.tensor(bias.value).type, DType::f32);
    for (std::size_t step = 0; step < 3; ++step) {
      set_batches(job, step);
      job.run({.step = static_cast<std::int64_t>(step + 1), .learning_rate = 1e-3});
      double size = 0, sum = 0;
      for (float v : job.values(bias)) size = std::max(size, std::fabs(static_cast<double>(v))), sum += v;
      EXPECT_LE(size, 0.01 * static_cast<double>(step + 1) + 1e-6);
      EXPECT_GT(size, 0.009) << "none moved";
      EXPECT_LT(std::fabs(sum), 0.08 * static_cast<double>(step + 1)) << "all moved alike";
    }
  });
}

TEST(Experts, StepsAreProvedAndRanksOfAClassDoTheSame) {
  for (const double factor : {0.0, 1.25}) {
    StepConfig c = small_mixtral();
    c.experts.capacity_factor = factor;
    for (const StepConfig& many : layouts(c)) {
      const std::vector<RankStep> classes = classes_of(many, ranks_of(many));
      EXPECT_EQ(check_step(many, ranks_of(many), classes, graph_of(classes)), "") << words(many.strategy);
    }
  }
}

TEST(Experts, AreCutAnewForOtherLayouts) {
  const Folder folder;
  const StepConfig saved = laid_out(deepseek(), {.tensor = 2, .expert = 2, .zero1 = true}, 4);
  expect_on_threads(8, [&](ccl::Communicator& w) {
    Job job(saved, w);
    CheckpointSaver checkpoints(folder.path() / "first", w, {});
    set_batches(job, 0);
    job.run({.step = 1, .learning_rate = 1e-2});
    checkpoints.save(job, 1);
    checkpoints.wait();
  });
  const std::filesystem::path first = folder.path() / "first" / tag_name(1);
  const CheckpointReader source(first);
  for (const StepConfig& other : {laid_out(deepseek(), {.expert = 4}, 8), laid_out(deepseek(), {.pipeline = 2}, 1)}) {
    const std::filesystem::path second = reshard(source, other, ranks_of(other), folder.path() / "second");
    const CheckpointReader again(second);
    EXPECT_EQ(again.verify(), source.names().size());
    ASSERT_EQ(again.names(), source.names());
    for (const std::string& name : source.names()) {
      const TensorSlice whole = source.whole(name);
      ASSERT_EQ(again.whole(name), whole) << name;
      std::vector<float> a(whole.elements()), b(whole.elements());
      source.read(name, whole, a.data()), again.read(name, whole, b.data());
      EXPECT_EQ(a, b) << name;
    }
    // Training that goes on from either checkpoint has the same loss.
    std::vector<double> losses;
    for (const auto& [config, tag] : {std::pair{saved, first}, {other, second}})
      expect_on_threads(ranks_of(config), [&, c = config, t = tag](ccl::Communicator& w) {
        StepConfig same = c;
        same.global_batch_size = 32;
        Job job(same, w);
        EXPECT_TRUE(load(job, CheckpointReader(t)));
        set_batches(job, 1);
        const double loss = job.run({.step = 2, .learning_rate = 1e-2}).loss;
        if (w.rank() == 0) losses.push_back(loss);
      });
    ASSERT_EQ(losses.size(), 2U);
    EXPECT_NEAR(losses[0] / losses[1], 1, 1e-5);
  }
}

TEST(Routing, ChoosesTheBestOfTheBestGroups) {
  const RoutingRule rule{.experts = 6, .top_k = 2, .score = RouterScore::sigmoid, .groups = 3, .top_groups = 1};
  const float logits[6] = {3, -9, 1, 1.5F, 0, 0}, bias[6] = {0, 0, 0, 0, 0, 2};
  float scores[6], weights[2];
  std::int32_t chosen[2];
  route(rule, 1, logits, nullptr, scores, chosen, weights);  // expert 0's score is the best, but its group's sum is not
  EXPECT_EQ(chosen[0], 3);
  EXPECT_EQ(chosen[1], 2);
  EXPECT_NEAR(weights[0] + weights[1], 1, 1e-6);
  route(rule, 1, logits, bias, scores, chosen, weights);
  EXPECT_EQ(chosen[0], 5);
  EXPECT_EQ(chosen[1], 4);
  EXPECT_NEAR(weights[0], 0.5, 1e-6) << "the bias chooses, and does not weigh";
}

TEST(Routing, GradientsAreThoseOfDifferences) {
  for (RouterScore score : {RouterScore::softmax, RouterScore::sigmoid})
    for (bool normalize : {true, false}) {
      const RoutingRule rule{.experts = 5, .top_k = 3, .score = score, .normalize = normalize, .scale = 1.5};
      std::vector<float> logits{0.3F, -0.2F, 0.9F, 0.1F, -0.7F}, scores(5), weights(3), dlogits(5);
      std::vector<std::int32_t> chosen(3), counts(5);
      const std::vector<float> along{0.4F, -1.0F, 0.7F};
      const auto value = [&] {
        route(rule, 1, logits.data(), nullptr, scores.data(), chosen.data(), weights.data());
        count_chosen(rule, 1, chosen.data(), counts.data());
        double sum = 0.3 * imbalance(rule, 1, scores.data(), counts.data());
        for (std::size_t k = 0; k < 3; ++k) sum += static_cast<double>(along[k]) * static_cast<double>(weights[k]);
        return sum;
      };
      value();
      std::vector<double> balance(5);
      for (std::size_t e = 0; e < 5; ++e) balance[e] = 0.3 * 5 * counts[e];
      route_gradient(rule, 1, scores.data(), chosen.data(), along.data(), balance.data(), dlogits.data());
      for (std::size_t e = 0; e < 5; ++e) {
        const float at = logits[e];
        logits[e] = at + 1e-2F;
        const double above = value();
        logits[e] = at - 1e-2F;
        const double below = value();
        logits[e] = at;
        EXPECT_NEAR((above - below) / 2e-2, static_cast<double>(dlogits[e]), 1e-4) << e;
      }
    }
}

TEST(Routing, TokensBeyondTheCapacityHaveNoRow) {
  const RoutingRule rule{.experts = 4, .top_k = 1};
  const std::int32_t chosen[5] = {2, 2, 0, 2, 3};
  std::int32_t counts[4], slots[5];
  count_chosen(rule, 5, chosen, counts);
  slots_of(rule, {}, 5, chosen, counts, slots);
  EXPECT_EQ(std::vector(slots, slots + 5), (std::vector<std::int32_t>{1, 2, 0, 3, 4}));
  slots_of(rule, {.capacity = 2, .ranks = 2}, 5, chosen, counts, slots);
  // Rank 0 has experts 0 and 1, and rank 1 has experts 2 and 3. First come the rows of each rank's first expert (0 and
  // 2), then those of its second (1 and 3).
  EXPECT_EQ(std::vector(slots, slots + 5), (std::vector<std::int32_t>{2, 3, 0, -1, 6}));
}

TEST(Experts, WhatCannotBeIsRefusedByName) {
  StepConfig c = small_mixtral();
  c.experts.top_k = 5;
  EXPECT_EQ(why([&] { lay_out(c, 1, 0); }),
            "model.moe.top_k is 5: expected at most 4, the experts that a token may go to");
  c = small_mixtral(), c.strategy.expert = 2;
  EXPECT_EQ(why([&] { lay_out(c, 1, 0); }),
            "distributed_strategy.expert_model_parallel_size is 2: expected a divisor of the 1 data-parallel ranks, "
            "which share out the experts");
  c = small_llama(), c.experts.experts = 4;
  EXPECT_EQ(why([&] { lay_out(c, 1, 0); }), "model.moe.num_experts is 4: expected 0 for architecture llama");
  c = small_mixtral(), c.experts.experts = 0;
  EXPECT_EQ(why([&] { lay_out(c, 1, 0); }), "model.moe.num_experts is 0: expected 1 or more for architecture mixtral");
}

}  // namespace
}  // namespace trellis::train
