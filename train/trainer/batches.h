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

#include "train/data/masked_pairs.h"
#include "train/data/tokens.h"
#include "train/whole/job.h"

namespace trellis::train {

// The data of one step: for each micro-batch, its tokens and labels, one sample after the other.
struct Batch {
  std::int64_t step = 0;
  std::vector<std::vector<std::int32_t>> tokens, labels;
  std::vector<std::vector<std::int32_t>> types, next;  // of models of pairs

  MicroBatch micro(std::size_t m) const {
    if (types.empty()) return {tokens[m].data(), labels[m].data()};
    return {tokens[m].data(), labels[m].data(), types[m].data(), next[m].data()};
  }
};

// Samples of token files, as the step's model reads them.
class Source {
 public:
  // Throws what MaskedPairs throws.
  Source(std::unique_ptr<Sampler>, const Step&, const SpecialTokens&);
  Batch read(const Step&, std::int64_t number) const;  // of a step, counted from 1, for the place of the step's rank
  std::size_t samples() const { return sampler_->samples(); }
  std::vector<DataFile> identity() const { return sampler_->identity(); }

 private:
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<MaskedPairs> pairs_;  // of models of these
};

class Batches {
 public:
  Batches(const Source&, const Step&, std::int64_t first_step, std::size_t ahead);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;
  Batch next();  // of the next step; throws what reading threw

 private:
  void work(std::int64_t step);
  const Source& source_;
  const Step& step_;
  std::size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr error_;
  bool ended_ = false;
  std::thread worker_;
};

}  // namespace trellis::train
