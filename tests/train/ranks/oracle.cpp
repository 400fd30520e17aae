// The same training as PyTorch's and Hugging Face's, whose losses and gradients are in tests/oracles/llama_torch.json
// (tests/oracles/llama_torch.py wrote them, in f64).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/train/ranks/formulas.h"
#include "tests/train/ranks/runs.h"
#include "train/whole/rank_step.h"

namespace trellis::train {
namespace {

constexpr std::size_t length = oracle_length, micro_batches = 4;
constexpr std::uint32_t vocabulary = oracle_vocabulary;

StepConfig config(bool tied, Rank tensor, Rank pipeline, bool zero) {
  StepConfig c = small_llama();
  c.model.tie_word_embeddings = tied;
  c.strategy = {.tensor = tensor, .pipeline = pipeline, .sequence_parallel = tensor > 1, .zero1 = zero};
  c.global_batch_size = micro_batches;
  c.optimizer.beta2 = 0.95, c.optimizer.epsilon = 1e-8, c.optimizer.weight_decay = 0.1;
  return c;
}

void expect_gradients(const Job& job, const nlohmann::json& golden) {
  for (const Parameter& p : job.parameters().all()) {
    if (p.frozen) continue;
    const auto& said = golden[p.name];
    double norm = 0, dot = 0;
    const std::vector<float> g = job.gradients(p);
    for (std::size_t i = 0; i < g.size(); ++i)
      norm += static_cast<double>(g[i]) * static_cast<double>(g[i]),
          dot += static_cast<double>(g[i]) * pseudo_random("dot." + p.name, i);
    norm = std::sqrt(norm);
    if (said["norm"].get<double>() < 1e-9) {  // of a key's bias, which changes no probability
      EXPECT_LT(norm, 1e-6) << p.name;
      continue;
    }
    EXPECT_NEAR(norm / said["norm"].get<double>(), 1, 1e-5) << p.name;
    EXPECT_NEAR(dot, said["dot"].get<double>(), 1e-5 * norm) << p.name;
  }
}

// set_batch(job, step, m, number): sets the job's micro-batch m to the one with this number in the step.
template <class SetBatch>
void expect_like_torch(const nlohmann::json& golden, const StepConfig& c, Rank world, SetBatch&& set_batch) {
  expect_on_threads(world, [&](ccl::Communicator& w) {
    Job job(c, w);
    job.fill([](const Parameter& p) -> Values {
      if (p.frozen) return initial_values(p, 0);
      const bool bias = p.name.find("bias") != p.name.npos;
      return [&p, bias](std::uint64_t index) {
        const double v = pseudo_random(p.name, index);
        return static_cast<float>(bias ? 0.1 * v : p.decays ? 0.4 * v : 1 + 0.1 * v);
      };
    });
    const auto losses = golden["losses"].get<std::vector<double>>(), norms = golden["norms"].get<std::vector<double>>();
    for (std::uint32_t step = 0; step < losses.size(); ++step) {
      const auto data = static_cast<std::uint32_t>(job.step().mesh.shape().data),
                 place = static_cast<std::uint32_t>(job.step().place.data);
      for (std::uint32_t m = 0; m < job.step().micro_batches; ++m) set_batch(job, step, m, m * data + place);
      const Job::Result r = job.run({.step = step + 1, .learning_rate = 3e-3});
      EXPECT_NEAR(r.loss, losses[step], 1e-4) << "step " << step;
      EXPECT_NEAR(r.norm / norms[step], 1, step == 0 ? 1e-5 : 1e-3) << "step " << step;
      if (step == 0 && world == 1) expect_gradients(job, golden["gradients"]);
    }
  });
}

// What bert_torch.py calls a masked pair.
struct MaskedPair {
  std::vector<std::int32_t> tokens, types, labels, next;
  MaskedPair(std::uint32_t step, std::uint32_t number) : tokens(tokens_of(step, number)) {
    tokens.pop_back();
    for (std::uint32_t i = 0; i < length; ++i) {
      const bool guessed = mixed((step * 1000 + number) * 300 + i) % 4 == 0;
      labels.push_back(guessed ? tokens[i] : -100);
      if (guessed) tokens[i] = vocabulary - 1;
      types.push_back(i >= length / 2 ? 1 : 0);
    }
    next.push_back(static_cast<std::int32_t>(mixed(step * 10 + number) % 2));
  }
};

TEST(Oracle, TenStepsOfBertAreThoseOfPyTorch) {
  std::ifstream in(std::string(TRELLIS_SOURCE_DIR) + "/tests/oracles/bert_torch.json");
  const nlohmann::json golden = nlohmann::json::parse(in)["bert"];
  const auto bert = [](Rank tensor, Rank pipeline, bool zero) {
    StepConfig c = config(true, tensor, pipeline, zero);
    c.model.architecture = "bert", c.model.num_key_value_heads = 4, c.model.max_position_embeddings = 32;
    return c;
  };
  const auto set_batch = [](Job& job, std::uint32_t step, std::uint32_t m, std::uint32_t number) {
    const MaskedPair pair(step, number);
    job.set_batch(m, {pair.tokens.data(), pair.labels.data(), pair.types.data(), pair.next.data()});
  };
  EXPECT_EQ(golden["losses"].size(), 10U);
  expect_like_torch(golden, bert(1, 1, false), 1, set_batch);
  expect_like_torch(golden, bert(2, 2, true), 8, set_batch);
}

// Experts on several layouts: E of the data-parallel ranks share them out.
TEST(Oracle, ThirtyStepsOfMixtralAreThoseOfHuggingFace) {
  std::ifstream in(std::string(TRELLIS_SOURCE_DIR) + "/tests/oracles/moe_torch.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  const auto with_experts = [](StrategyConfig s, std::size_t layers) {
    StepConfig c = config(false, 1, 1, false);
    c.model.architecture = "mixtral", c.model.num_layers = layers;
    c.experts = {.experts = 4, .top_k = 2, .balance = layers == 1 ? 0.02 : 0};
    c.strategy = std::move(s);
    return c;
  };
  const auto set_batch = [](Job& job, std::uint32_t step, std::uint32_t m, std::uint32_t number) {
    const auto tokens = tokens_of(step, number);
    job.set_batch(m, {tokens.data(), tokens.data() + 1});
  };
  EXPECT_EQ(golden["mixtral"]["losses"].size(), 30U);
  expect_like_torch(golden["mixtral"], with_experts({}, 4), 1, set_batch);
  expect_like_torch(golden["mixtral"], with_experts({.expert = 2}, 4), 4, set_batch);
  expect_like_torch(golden["mixtral"], with_experts({.expert = 4, .zero1 = true}, 4), 4, set_batch);
  expect_like_torch(golden["mixtral"],
                    with_experts({.tensor = 2, .expert = 2, .sequence_parallel = true, .zero1 = true}, 4), 4,
                    set_batch);
  expect_like_torch(golden["mixtral"], with_experts({.tensor = 2, .pipeline = 2, .expert = 2, .zero1 = true}, 4), 8,
                    set_batch);
  StepConfig limited = with_experts({.expert = 2}, 4);
  limited.experts.capacity_factor = 2;  // so that none is dropped
  expect_like_torch(golden["mixtral"], limited, 2, set_batch);
  expect_like_torch(golden["balanced"], with_experts({}, 1), 1, set_batch);
  expect_like_torch(golden["balanced"], with_experts({.tensor = 2, .expert = 2, .sequence_parallel = true}, 1), 4,
                    set_batch);

  const auto deepseek = [&](StrategyConfig s) {
    StepConfig c = with_experts(std::move(s), 2);
    c.model.architecture = "deepseek_moe";
    c.experts = {.experts = 4,
                 .top_k = 2,
                 .inner = 24,
                 .first_layer = 1,
                 .shared = 2,
                 .score = RouterScore::sigmoid,
                 .scale = 2.5,
                 .groups = 2,
                 .top_groups = 1,
                 .bias = true,
                 .bias_rate = 0.01};
    return c;
  };
  expect_like_torch(golden["deepseek"], deepseek({}), 1, set_batch);
  expect_like_torch(golden["deepseek"], deepseek({.tensor = 2, .expert = 2, .sequence_parallel = true, .zero1 = true}),
                    4, set_batch);
}

TEST(Oracle, FiftyStepsOfLlamaAreThoseOfPyTorch) {
  std::ifstream in(std::string(TRELLIS_SOURCE_DIR) + "/tests/oracles/llama_torch.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  const auto set_batch = [](Job& job, std::uint32_t step, std::uint32_t m, std::uint32_t number) {
    const auto tokens = tokens_of(step, number);
    job.set_batch(m, {tokens.data(), tokens.data() + 1});
  };
  for (const char* kind : {"untied", "tied"}) EXPECT_EQ(golden[kind]["losses"].size(), 50U) << kind;
  expect_like_torch(golden["untied"], config(false, 1, 1, false), 1, set_batch);
  expect_like_torch(golden["tied"], config(true, 1, 1, false), 1, set_batch);
  expect_like_torch(golden["tied"], config(true, 2, 2, true), 8, set_batch);
}

}  // namespace
}  // namespace trellis::train
