#include "train/whole/text_generator.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "schedule/graph/match_exchanges.h"
#include "text/refuse.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"
#include "train/whole/job.h"

namespace trellis::train {
namespace {

constexpr std::size_t piece = 64;  // tokens of a prompt that go through the model together

StepConfig of_generation(StepConfig c, Rank world) {
  const StrategyConfig& s = c.strategy;
  if (world != s.tensor * s.pipeline)
    text::refuse("{} ranks generate: expected distributed_strategy's tensor x pipeline parallel sizes, {} x {}", world,
                 s.tensor, s.pipeline);
  c.strategy.sequence_parallel = c.strategy.zero1 = false, c.strategy.context = 1;
  c.model.hidden_dropout = c.model.attention_dropout = 0;
  c.recompute = Recompute::none;
  c.cut_attention = false;
  c.micro_batch_size = c.global_batch_size = 1;
  return c;
}

}  // namespace

struct TextGenerator::Pass {
  Pass(RankStep laid_out, const std::function<std::unique_ptr<Runner>(const RankStep&)>& runner_of)
      : step(std::move(laid_out)), runner(runner_of(step)) {}
  RankStep step;
  std::unique_ptr<Runner> runner;  // of the step's program
};

TextGenerator::TextGenerator(const StepConfig& config, ccl::Communicator& world, std::size_t capacity, int threads)
    : config_(of_generation(config, world.ranks())),
      world_(world),
      capacity_(std::max<std::size_t>(1, capacity)),
      threads_(threads) {
  const ModelConfig& m = config_.model;
  if (m.rope_scaling.type == "dynamic" && capacity_ > m.max_position_embeddings)
    text::refuse(
        "{} positions with dynamic rope_scaling: expected at most max_position_embeddings {}, as all keys "
        "would turn anew "
        "with each one more",
        capacity_, m.max_position_embeddings);
  make(one_, 1);
}

TextGenerator::~TextGenerator() = default;

const RankStep& TextGenerator::step() const { return one_->step; }
Runner& TextGenerator::runner() { return *one_->runner; }

void TextGenerator::make(std::unique_ptr<Pass>& pass, std::size_t tokens) {
  StepConfig c = config_;
  c.seq_length = tokens;
  const std::vector<RankStep> classes = classes_of(c, world_.ranks(), StepPurpose::generate, capacity_);
  if (const std::string fault = schedule::match(graph_of(classes)).fault; !fault.empty())
    throw std::runtime_error("the generation is not proved: " + fault);
  pass = std::make_unique<Pass>(
      lay_out(c, world_.ranks(), world_.rank(), StepPurpose::generate, capacity_), [&](const RankStep& step) {
        if (!one_) return std::make_unique<Runner>(step.program, communicators_for(step, world_), threads_);
        return std::make_unique<Runner>(step.program, one_->runner->communicators(), threads_,
                                        ParameterStorage::parameters_elsewhere);
      });
  if (pass == one_) return;
  // Shares parameters, and the keys and values that attention keeps, with the one-token pass.
  const std::vector<Tensor>& there = one_->step.program.tensors;
  for (std::size_t i = 0; i < pass->step.program.tensors.size(); ++i) {
    const Tensor& t = pass->step.program.tensors[i];
    if (t.category != Category::parameter) continue;
    const auto same = std::ranges::find(there, t.name, &Tensor::name);
    pass->runner->borrow(static_cast<TensorId>(i), one_->runner->at(static_cast<TensorId>(same - there.begin())));
  }
}

void TextGenerator::run(Pass& pass, std::span<const std::int32_t> tokens) {
  if (!pass.step.tokens.empty()) std::ranges::copy(tokens, pass.runner->as<std::int32_t>(pass.step.tokens[0]));
  pass.runner->run({.step = static_cast<std::int64_t>(length_)});
  length_ += tokens.size();
}

void TextGenerator::expect_fitting(std::span<const std::int32_t> tokens) const {
  if (tokens.empty()) throw std::invalid_argument("the prompt is empty: expected a token at least");
  if (tokens.size() > capacity_ - length_)
    text::refuse("{} tokens behind {}: expected at most {} in all", tokens.size(), length_, capacity_);
  for (std::int32_t token : tokens)
    if (token < 0 || static_cast<std::size_t>(token) >= config_.model.vocab_size)
      text::refuse("token {}: expected 0 to {}, an entry of the vocabulary", token, config_.model.vocab_size - 1);
}

std::span<const float> TextGenerator::feed(std::span<const std::int32_t> tokens) {
  expect_fitting(tokens);
  Pass* last = nullptr;
  while (!tokens.empty()) {
    const std::size_t n = tokens.size() >= piece ? piece : 1;
    std::unique_ptr<Pass>& pass = n == 1 ? one_ : many_;
    if (!pass) make(pass, n);
    run(*pass, tokens.first(n));
    tokens = tokens.subspan(n);
    last = pass.get();
  }
  const TensorId logits = last->step.logits;
  if (logits == no_tensor) return {};
  return {last->runner->as<float>(logits), config_.model.vocab_size};
}

std::vector<std::int32_t> TextGenerator::generate(std::span<const std::int32_t> prompt, std::size_t count,
                                                  const SamplingOptions& sampling, std::span<const std::int32_t> ends,
                                                  const std::function<void(std::int32_t)>& told) {
  sampling.check();
  const Mesh& mesh = one_->step.mesh;
  const Rank chooser = mesh.rank({.pipeline = mesh.shape().pipeline - 1});
  std::vector<std::int32_t> tokens;
  while (tokens.size() < count) {
    const auto logits = feed(tokens.empty() ? prompt : std::span<const std::int32_t>(tokens).last(1));
    std::int32_t token = world_.rank() == chooser ? chosen_token(logits, sampling, tokens.size()) : 0;
    if (world_.ranks() > 1) world_.broadcast(&token, &token, 1, kernels::DType::i32, chooser);
    tokens.push_back(token);
    if (told) told(token);
    if (std::ranges::find(ends, token) != ends.end()) break;
  }
  return tokens;
}

}  // namespace trellis::train
