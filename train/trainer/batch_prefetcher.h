// The batches of a data-parallel rank, read ahead by a thread of their own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "train/data/bert_samples.h"
#include "train/data/source.h"
#include "train/trainer/callback.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

// Samples of a data source, as the step's model reads them.
class BatchSource {
 public:
  // checked: its tokens are known to be in the vocabulary. Throws what BertSamples throws.
  BatchSource(std::shared_ptr<const DataSource>, const RankStep&, const SpecialTokens&, bool checked);
  Batch read(const RankStep&,
             std::int64_t number) const;  // of a step, counted from 1, for the place of the step's rank
  std::uint64_t samples() const { return data_->samples(); }
  std::vector<DataFile> identity() const { return data_->identity(); }

 private:
  void check(const RankStep&, const Batch&) const;
  std::shared_ptr<const DataSource> data_;
  std::unique_ptr<BertSamples> pairs_;  // null unless the model is one of pairs
  bool checked_;
};

class BatchPrefetcher {
 public:
  BatchPrefetcher(const BatchSource&, const RankStep&, std::int64_t first_step, std::size_t ahead);
  ~BatchPrefetcher();
  Batch next();  // of the next step; throws what reading threw

 private:
  void work(std::int64_t step);
  const BatchSource& source_;
  const RankStep& step_;
  std::size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr error_;
  bool ended_ = false;
  std::thread worker_;
};

}  // namespace trellis::train
