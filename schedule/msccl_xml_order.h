// What of one gpu's steps the file puts before what: each thread block's own order, and the waits between blocks.
#pragma once
#include "schedule/msccl_xml_file.h"

namespace trellis::schedule::msccl {

struct StepAt {
  std::int32_t block = -1;  // index into Gpu::blocks
  std::int32_t step = -1;
  bool operator==(const StepAt&) const = default;
};

class Order {
 public:
  Order(const Gpu&, Rank);  // throws invalid_argument when a wait can never end

  const std::vector<StepAt>& steps() const { return steps_; }  // each after all that come before it; no nops

  // How many of a block's steps are before this one, or are this one.
  std::int32_t known(StepAt at, std::size_t block) const { return known_[row(at) + block]; }

 private:
  std::vector<StepAt> waits(StepAt) const;
  StepAt signal(StepAt waiting) const;
  std::size_t row(StepAt at) const { return (first_[at.block] + at.step) * blocks_.size(); }
  void sort();
  [[noreturn]] void fail(StepAt, const std::string& why) const;

  Rank rank_;
  const std::vector<Block>& blocks_;
  std::vector<std::int32_t> index_;  // of blocks, sorted by their ids
  std::vector<std::size_t> first_;   // of each block's steps, and one beyond
  std::vector<StepAt> steps_;
  std::vector<std::int32_t> known_;  // a row for each step, a column for each block
};

}  // namespace trellis::schedule::msccl
