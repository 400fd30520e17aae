#include "train/trainer/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace trellis::train {
namespace {

// What the configuration names, or the last three of the vocabulary.
SpecialTokens special_tokens(const JobConfig& config) {
  const auto& said = config.data.special_tokens;
  const auto last = static_cast<std::int32_t>(config.step.model.vocab_size);
  if (said.empty()) return {last - 3, last - 2, last - 1};
  if (said.size() != 3)
    throw std::invalid_argument(
        fmt::format("data.special_tokens has {} entries: expected 3, for CLS, SEP and MASK", said.size()));
  return {static_cast<std::int32_t>(said[0]), static_cast<std::int32_t>(said[1]), static_cast<std::int32_t>(said[2])};
}

}  // namespace

std::unique_ptr<Source> source_of(const std::vector<std::string>& paths, const JobConfig& config, const Step& step) {
  std::vector<std::unique_ptr<TokenFile>> files;
  for (const std::string& path : paths) files.push_back(std::make_unique<TokenFile>(path, config.data.token_bytes));
  auto sampler = std::make_unique<Sampler>(std::move(files), config.step.seq_length, config.step.seed);
  sampler->check(config.step.model.vocab_size);
  return std::make_unique<Source>(std::move(sampler), step, special_tokens(config));
}

Validation::Validation(const JobConfig& config, Job& job)
    : job_(job), evaluation_(job), source_(source_of(config.data.val_path, config, job.step())) {
  batches_ = static_cast<std::int64_t>(source_->samples() / config.step.global_batch_size);
  if (batches_ == 0)
    throw std::invalid_argument(
        fmt::format("data.val_path: {} samples; expected a batch at least, global_batch_size {}", source_->samples(),
                    config.step.global_batch_size));
}

double Validation::loss(std::int64_t most, double share) {
  job_.runner().settle();
  // A share has one batch at least.
  const auto of_share = std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(batches_)));
  const std::int64_t n = std::min(most < 0 ? of_share : most, batches_);
  double sum = 0;
  for (std::int64_t i = 1; i <= n; ++i) {
    const Batch batch = source_->read(evaluation_.step(), i);
    for (std::size_t m = 0; m < batch.tokens.size(); ++m) evaluation_.set_batch(m, batch.micro(m));
    sum += evaluation_.run();
  }
  return sum / static_cast<double>(n);
}

}  // namespace trellis::train
