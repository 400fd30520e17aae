// Gradients of whole models against differences of their losses, and parts of a step against expected values.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/ranks/runs.h"
#include "train/step/run.h"
#include "train/whole/rank_step.h"

namespace trellis::train {
namespace {

// Compares the loss at both ends of a small step along one parameter with what the gradient predicts.
void expect_slopes(const StepConfig& config, std::int32_t ignored_every = 0) {
  expect_on_threads(1, [&](ccl::Communicator& c) {
    Job job(config, c);
    if (config.lora.rank > 0)  // B is zero at first, which would hide A
      job.fill([](const Parameter& p) {
        Parameter like = p;
        if (p.initial.kind == Initial::Kind::zeros) like.initial = {Initial::Kind::normal, 0.1};
        return initial_values(like, 3);
      });
    set_batches(job, 0, ignored_every);
    const StepInputs still{.step = 1, .learning_rate = 0};
    job.run(still);
    struct Known {
      const Parameter* parameter;
      std::vector<float> values, gradient;
    };
    std::vector<Known> known;
    for (const Parameter& p : job.parameters().all())
      if (!p.frozen) known.push_back({&p, job.values(p), job.gradients(p)});
    for (const Known& k : known) {
      double length = 0;
      for (float g : k.gradient) length += static_cast<double>(g) * static_cast<double>(g);
      length = std::sqrt(length);
      if (k.parameter->name.find("key.bias") != std::string::npos &&
          k.parameter->name.find("neox") == std::string::npos) {
        EXPECT_LT(length, 1e-6) << "without rotary positions, a shift of all keys changes no probability";
        continue;
      }
      ASSERT_GT(length, 1e-7) << k.parameter->name;
      const double reach = 5e-3;
      double loss[2];
      for (int side = 0; side < 2; ++side) {
        float* const at = job.runner().as<float>(k.parameter->value);
        for (std::size_t i = 0; i < k.values.size(); ++i)
          at[i] = k.values[i] +
                  static_cast<float>((side == 0 ? -reach : reach) * static_cast<double>(k.gradient[i]) / length);
        loss[side] = job.run(still).loss;
        std::copy(k.values.begin(), k.values.end(), at);
      }
      EXPECT_NEAR((loss[1] - loss[0]) / (2 * reach) / length, 1, 2e-2) << k.parameter->name;
    }
  });
}

StepConfig tiny() {
  StepConfig c = small_llama();
  c.model.num_layers = 2, c.global_batch_size = 2, c.micro_batch_size = 2;
  c.optimizer.clip = false, c.optimizer.weight_decay = 0;
  return c;
}

TEST(Gradients, Llama) { expect_slopes(tiny()); }

TEST(Gradients, LlamaWithTiedWeightsDropoutSmoothingAndIgnoredLabels) {
  StepConfig c = tiny();
  c.model.tie_word_embeddings = true, c.model.hidden_dropout = c.model.attention_dropout = 0.1;
  c.model.label_smoothing = 0.2;
  expect_slopes(c, 3);
}

TEST(Gradients, OfAdaptersAlone) {
  StepConfig c = tiny();
  c.lora = {
      .rank = 4, .alpha = 8, .targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}};
  expect_slopes(c);
}

TEST(Gradients, GptNeoxAndGpt3) {
  for (const char* model : {"gpt_neox", "gpt3"}) {
    StepConfig c = tiny();
    c.model.architecture = model, c.model.num_key_value_heads = 4, c.model.rotary_percentage = 0.5;
    expect_slopes(c);
  }
}

TEST(Gradients, BertWithDropoutAndMaskedWords) {
  StepConfig c = tiny();
  c.model.architecture = "bert", c.model.num_key_value_heads = 4, c.model.tie_word_embeddings = true;
  c.model.hidden_dropout = c.model.attention_dropout = 0.1;
  expect_slopes(c, 3);
}

// Each token goes to all experts, as the loss would jump where a token changes its experts.
TEST(Gradients, OfExperts) {
  StepConfig c = tiny();
  c.model.architecture = "mixtral", c.model.intermediate_size = 24;
  c.experts = {.experts = 3, .top_k = 3, .balance = 0.1};
  expect_slopes(c);
  c.experts.capacity_factor = 0.5;
  expect_slopes(c);
}

std::vector<Tensors> gradients_of(const StepConfig& c, Rank world) {
  std::vector<Tensors> all(static_cast<std::size_t>(world));
  expect_on_threads(world, [&](ccl::Communicator& w) {
    Job job(c, w);
    set_batches(job, 0);
    job.run({.step = 1, .learning_rate = 0});
    for (const Parameter& p : job.parameters().all())
      if (!p.frozen) all[static_cast<std::size_t>(w.rank())][p.name] = job.gradients(p);
  });
  return all;
}

// ZeRO-1 leaves each rank the sum of its own rows alone.
TEST(Gradients, AreThoseOfTheStepWithZeroToo) {
  StepConfig data = small_llama(), context = data, experts = data;
  context.strategy.context = 2;
  experts.model.architecture = "mixtral", experts.experts = {.experts = 4, .top_k = 2}, experts.strategy.expert = 2;
  for (StepConfig c : {data, context, experts}) {
    const Rank world = c.strategy.expert > 1 ? 4 : 2;
    c.strategy.zero1 = false;
    const std::vector<Tensors> expected = gradients_of(c, world);
    c.strategy.zero1 = true;
    const std::vector<Tensors> got = gradients_of(c, world);
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
      const auto [worst, name] = distance(got[rank], expected[rank]);
      EXPECT_LT(worst, 1e-5) << "rank " << rank << ": " << name;
    }
  }
}

TEST(Gradients, OfAQueryBlockAndMore) {
  StepConfig c = tiny();
  c.seq_length = 150, c.model.num_layers = 1, c.global_batch_size = c.micro_batch_size = 1;
  expect_slopes(c);
}

// With all labels alike and one class near certain, the loss of smoothing has a closed form.
TEST(Gradients, SmoothingOfUniformLogitsIsTheLogarithmOfTheClasses) {
  StepConfig c = tiny();
  c.model.label_smoothing = 0.3, c.model.initializer_range = 0;
  expect_on_threads(1, [&](ccl::Communicator& world) {
    Job job(c, world);
    set_batches(job, 0);
    EXPECT_NEAR(job.run({.step = 1, .learning_rate = 0}).loss, std::log(64.0), 1e-6);
  });
}

}  // namespace
}  // namespace trellis::train
