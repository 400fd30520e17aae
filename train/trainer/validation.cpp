#include "train/trainer/validation.h"

#include <algorithm>

#include "text/refuse.h"
#include "train/data/blend.h"
#include "train/data/sampler.h"
#include "train/step/run.h"

namespace trellis::train {
namespace {

// The tokens that the configuration names, or the last three of the vocabulary.
SpecialTokens special_tokens(const JobConfig& config) {
  const auto& said = config.data.special_tokens;
  const auto last = static_cast<std::int32_t>(config.step.model.vocab_size);
  if (said.empty()) return {last - 3, last - 2, last - 1};
  if (said.size() != 3)
    text::refuse("data.special_tokens has {} entries: expected 3, for CLS, SEP and MASK", said.size());
  return {static_cast<std::int32_t>(said[0]), static_cast<std::int32_t>(said[1]), static_cast<std::int32_t>(said[2])};
}

}  // namespace

std::unique_ptr<BatchSource> source_of(const std::vector<std::string>& paths, const std::vector<double>& weights,
                                       const JobConfig& config, const RankStep& step) {
  const DocumentOptions options{.whole_documents = !config.data.packing, .mask_ends = config.data.mask_ends};
  std::vector<std::unique_ptr<TokenFile>> files;
  std::vector<std::shared_ptr<const DataSource>> parts;
  const auto sampler = [&](std::uint64_t seed) {
    auto made = std::make_shared<Sampler>(std::move(files), config.step.seq_length, seed, options);
    made->check(config.step.model.vocab_size);
    files.clear();
    return made;
  };
  for (const std::string& path : paths) {
    files.push_back(std::make_unique<TokenFile>(path, config.data.token_bytes));
    if (options.whole_documents && !files.back()->tells_documents())
      text::refuse("data.packing is false: expected documents in {}, which Megatron's .idx has, or lines of .jsonl",
                   files.back()->name());
    if (!weights.empty()) parts.push_back(sampler(config.step.seed + parts.size()));
  }
  std::shared_ptr<const DataSource> data;
  if (weights.empty())
    data = sampler(config.step.seed);
  else
    data = std::make_shared<Blend>(std::move(parts), weights);
  return std::make_unique<BatchSource>(std::move(data), step, special_tokens(config), true);
}

std::unique_ptr<BatchSource> source_of(std::shared_ptr<const DataSource> data, const JobConfig& config,
                                       const RankStep& step) {
  return std::make_unique<BatchSource>(std::move(data), step, special_tokens(config), false);
}

Validation::Validation(const JobConfig& config, Job& job, std::shared_ptr<const DataSource> data)
    : job_(job),
      evaluation_(job),
      source_(data ? source_of(data, config, job.step()) : source_of(config.data.val_path, {}, config, job.step())) {
  batches_ = static_cast<std::int64_t>(source_->samples() / config.step.global_batch_size);
  if (batches_ == 0)
    text::refuse("{}: {} samples; expected a batch at least, global_batch_size {}",
                 data ? "validation data" : "data.val_path", source_->samples(), config.step.global_batch_size);
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
