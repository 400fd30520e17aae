#include "train/trainer/batches.h"

#include <algorithm>

#include "train/models/block.h"

namespace trellis::train {

Batches::Batches(const Source& source, const Step& step, std::int64_t first_step, std::size_t ahead)
    : source_(source),
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

Source::Source(std::unique_ptr<Sampler> sampler, const Step& step, const SpecialTokens& special)
    : sampler_(std::move(sampler)) {
  const Config& c = step.config;
  if (model_named(c.model.architecture).pairs)
    pairs_ = std::make_unique<MaskedPairs>(*sampler_, c.seq_length, c.model.vocab_size, special, c.seed);
}

Batch Source::read(const Step& step, std::int64_t number) const {
  const std::size_t batch = step.config.micro_batch_size, length = step.config.seq_length;
  const auto data = static_cast<std::size_t>(step.mesh.shape().data), place = static_cast<std::size_t>(step.place.data);
  Batch b;
  b.step = number;
  std::vector<std::int32_t> sample(length + 1), type(length), label(length);
  const auto append = [](std::vector<std::int32_t>& to, const std::vector<std::int32_t>& from, std::size_t n) {
    to.insert(to.end(), from.begin(), from.begin() + static_cast<std::ptrdiff_t>(n));
  };
  for (std::size_t m = 0; m < step.micro_batches; ++m) {
    b.tokens.emplace_back(), b.labels.emplace_back();
    if (pairs_) b.types.emplace_back(), b.next.emplace_back();
    // Samples of a step are dealt out micro-batch by micro-batch, and of each to the data-parallel ranks in order.
    const std::size_t whole = step.micro_batches * data * batch;
    for (std::size_t i = 0; i < batch; ++i) {
      const std::size_t one = static_cast<std::size_t>(number - 1) * whole + (m * data + place) * batch + i;
      if (pairs_) {
        b.next[m].push_back(pairs_->read(one, sample.data(), type.data(), label.data()) ? 0 : 1);
        append(b.types[m], type, length);
      } else {
        sampler_->read(one, sample.data(), label.data());
      }
      append(b.tokens[m], sample, length);
      append(b.labels[m], label, length);
    }
  }
  return b;
}

void Batches::work(std::int64_t step) {
  try {
    for (;; ++step) {
      Batch b = source_.read(step_, step);
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
