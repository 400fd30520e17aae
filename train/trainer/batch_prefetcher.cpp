#include "train/trainer/batch_prefetcher.h"

#include <algorithm>

#include "text/refuse.h"
#include "train/models/model_interface.h"

namespace trellis::train {

MicroBatch Batch::micro(std::size_t m) const {
  const auto of = [&](const auto& all) { return all.empty() ? nullptr : all[m].data(); };
  return {of(tokens), of(labels), of(types), of(next), of(starts)};
}

BatchPrefetcher::BatchPrefetcher(const BatchSource& source, const RankStep& step, std::int64_t first_step,
                                 std::size_t ahead)
    : source_(source),
      step_(step),
      ahead_(std::max<std::size_t>(1, ahead)),
      worker_([this, first_step] { work(first_step); }) {}

BatchPrefetcher::~BatchPrefetcher() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

BatchSource::BatchSource(std::shared_ptr<const DataSource> data, const RankStep& step, const SpecialTokens& special,
                         bool checked)
    : data_(std::move(data)), checked_(checked) {
  const StepConfig& c = step.config;
  if (model_named(c.model.architecture).pairs)
    pairs_ = std::make_unique<BertSamples>(*data_, c.seq_length, c.model.vocab_size, special, c.seed);
}

// A token outside the vocabulary would be read beyond the embedding's table.
void BatchSource::check(const RankStep& step, const Batch& b) const {
  const auto vocabulary = static_cast<std::int64_t>(step.config.model.vocab_size);
  const auto expect = [&](const auto& all, const char* what, std::int64_t from, std::int64_t below) {
    for (const auto& each : all)
      for (const std::int32_t value : each)
        if ((value < from || value >= below) && value != no_label)
          text::refuse("the data source's {} of step {} have {}: expected {} to {}", what, b.step, value, from,
                       below - 1);
  };
  expect(b.tokens, "tokens", 0, vocabulary);
  expect(b.labels, "labels", 0, vocabulary);
  expect(b.starts, "starts", 0, static_cast<std::int64_t>(step.config.seq_length));
  for (const auto& each : b.tokens)
    if (std::ranges::find(each, no_label) != each.end())
      text::refuse("the data source's tokens of step {} have {}", b.step, no_label);
  for (const auto& each : b.starts)
    for (std::size_t i = 0; i < each.size(); ++i)
      if (each[i] < 0 || static_cast<std::size_t>(each[i]) > i % step.config.seq_length)
        text::refuse("the data source's start of position {} in step {} is {}", i % step.config.seq_length, b.step,
                     each[i]);
}

Batch BatchSource::read(const RankStep& step, std::int64_t number) const {
  const std::size_t batch = step.config.micro_batch_size, length = step.config.seq_length;
  const auto data = static_cast<std::size_t>(step.mesh.shape().data), place = static_cast<std::size_t>(step.place.data);
  const bool cut = step.config.cut_attention;
  Batch b;
  b.step = number;
  for (std::size_t m = 0; m < step.micro_batches; ++m) {
    // A step's samples are dealt out micro-batch by micro-batch, in each to the data-parallel ranks in order.
    const std::size_t whole = step.micro_batches * data * batch;
    auto& tokens = b.tokens.emplace_back(batch * length);
    auto& labels = b.labels.emplace_back(batch * length, no_label);
    if (pairs_) b.types.emplace_back(batch * length), b.next.emplace_back(batch);
    if (cut) b.starts.emplace_back(batch * length);
    for (std::size_t i = 0; i < batch; ++i) {
      const std::size_t one = static_cast<std::size_t>(number - 1) * whole + (m * data + place) * batch + i;
      const std::size_t at = i * length;
      if (pairs_)
        b.next[m][i] = pairs_->read(one, &tokens[at], &b.types[m][at], &labels[at]) ? 0 : 1;
      else
        data_->read(one, {&tokens[at], &labels[at], cut ? &b.starts[m][at] : nullptr});
    }
  }
  if (!checked_) check(step, b);
  return b;
}

void BatchPrefetcher::work(std::int64_t step) {
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

Batch BatchPrefetcher::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || !ready_.empty(); });
  if (ready_.empty()) std::rethrow_exception(error_);
  Batch b = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return b;
}

}  // namespace trellis::train
