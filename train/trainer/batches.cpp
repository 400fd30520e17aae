#include "train/trainer/batches.h"

#include <algorithm>

namespace trellis::train {

Batches::Batches(const Sampler& sampler, const Step& step, std::int64_t first_step, std::size_t ahead)
    : sampler_(sampler),
      step_(step),
      ahead_(std::max<std::size_t>(1, ahead)),
      worker_([this, first_step] { work(first_step); }) {}

Batches::~Batches() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

Batch read_batch(const Sampler& sampler, const Step& step, std::int64_t number) {
  const std::size_t batch = step.config.micro_batch_size, length = step.config.seq_length;
  const auto data = static_cast<std::size_t>(step.mesh.shape().data), place = static_cast<std::size_t>(step.place.data);
  Batch b;
  b.step = number;
  std::vector<std::int32_t> sample(length + 1), label(length);
  for (std::size_t m = 0; m < step.micro_batches; ++m) {
    auto& tokens = b.tokens.emplace_back();
    auto& labels = b.labels.emplace_back();
    // Samples of a step are dealt out micro-batch by micro-batch, and of each to the data-parallel ranks in order.
    const std::size_t whole = step.micro_batches * data * batch;
    for (std::size_t i = 0; i < batch; ++i) {
      sampler.read(static_cast<std::size_t>(number - 1) * whole + (m * data + place) * batch + i, sample.data(),
                   label.data());
      tokens.insert(tokens.end(), sample.begin(), sample.end() - 1);
      labels.insert(labels.end(), label.begin(), label.end());
    }
  }
  return b;
}

void Batches::work(std::int64_t step) {
  try {
    for (;; ++step) {
      Batch b = read_batch(sampler_, step_, step);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ended_ || ready_.size() < ahead_; });
      if (ended_) return;
      ready_.push_back(std::move(b));
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

Batch Batches::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || !ready_.empty(); });
  if (ready_.empty()) std::rethrow_exception(error_);
  Batch b = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return b;
}

}  // namespace trellis::train
