// The happens-before order of one gpu's steps in an MSCCL file: order within thread blocks and waits between them.
#pragma once
#include "schedule/formats/msccl_xml_file.h"

namespace trellis::schedule::msccl {

struct StepAt {
  std::int32_t block = -1;  // index into XmlGpu::blocks
  std::int32_t step = -1;
  bool operator==(const StepAt&) const = default;
};

class XmlOrder {
 public:
  XmlOrder(const XmlGpu&, Rank);  // throws invalid_argument if a wait can never end

  const std::vector<StepAt>& steps() const { return steps_; }  // topological order, without nops

  // How many of the block's steps come before this step, or are this step.
  std::int32_t known(StepAt at, std::size_t block) const { return known_[row(at) + block]; }

 private:
  std::vector<StepAt> waits(StepAt) const;
  StepAt signal(StepAt waiting) const;
  std::size_t row(StepAt at) const { return (first_[at.block] + at.step) * blocks_.size(); }
  void sort();
  [[noreturn]] void fail(StepAt, const std::string& why) const;

  Rank rank_;
  const std::vector<XmlBlock>& blocks_;
  std::vector<std::int32_t> index_;  // of blocks, sorted by id
  std::vector<std::size_t> first_;   // first step of each block, plus an end mark
  std::vector<StepAt> steps_;
  std::vector<std::int32_t> known_;  // a row per step, a column per block
};

}  // namespace trellis::schedule::msccl
