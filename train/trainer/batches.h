// The batches of a data-parallel rank, read ahead by a thread of their own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "train/data/tokens.h"
#include "train/whole/step.h"

namespace trellis::train {

// Of one step: for each micro-batch, its tokens and labels, one sample after the other.
struct Batch {
  std::int64_t step = 0;
  std::vector<std::vector<std::int32_t>> tokens, labels;
};

// The batch of a step, counted from 1, for the place of the step's rank.
Batch read_batch(const Sampler&, const Step&, std::int64_t number);

class Batches {
 public:
  Batches(const Sampler&, const Step&, std::int64_t first_step, std::size_t ahead);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;
  Batch next();  // of the next step; throws what reading threw

 private:
  void work(std::int64_t step);
  const Sampler& sampler_;
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
