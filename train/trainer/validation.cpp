#include "train/trainer/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "train/trainer/batches.h"

namespace trellis::train {

std::unique_ptr<Sampler> sampler_of(const std::vector<std::string>& paths, const JobConfig& config) {
  std::vector<std::unique_ptr<TokenFile>> files;
  for (const std::string& path : paths) files.push_back(std::make_unique<TokenFile>(path, config.data.token_bytes));
  auto sampler = std::make_unique<Sampler>(std::move(files), config.step.seq_length, config.step.seed);
  sampler->check(config.step.model.vocab_size);
  return sampler;
}

Validation::Validation(const JobConfig& config, Job& job)
    : job_(job), evaluation_(job), sampler_(sampler_of(config.data.val_path, config)) {
  batches_ = static_cast<std::int64_t>(sampler_->samples() / config.step.global_batch_size);
  if (batches_ == 0)
    throw std::invalid_argument(
        fmt::format("data.val_path: {} samples; expected a batch at least, global_batch_size {}", sampler_->samples(),
                    config.step.global_batch_size));
}

double Validation::loss(std::int64_t most) {
  job_.runner().settle();
  const std::int64_t n = most < 0 ? batches_ : std::min(most, batches_);
  double sum = 0;
  for (std::int64_t i = 1; i <= n; ++i) {
    const Batch batch = read_batch(*sampler_, evaluation_.step(), i);
    for (std::size_t m = 0; m < batch.tokens.size(); ++m)
      evaluation_.set_batch(m, batch.tokens[m].data(), batch.labels[m].data());
    sum += evaluation_.run();
  }
  return sum / static_cast<double>(n);
}

}  // namespace trellis::train
