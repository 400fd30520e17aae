// The happens-before order of one gpu's steps in an MSCCL file: order within thread blocks and waits between them.
#pragma once
#include "schedule/formats/msccl_xml_file.h"

namespace trellis::schedule::msccl {

struct XmlStepPosition {
  std::int32_t block = -1;  // index into XmlGpu::blocks
  std::int32_t step = -1;
  bool operator==(const XmlStepPosition&) const = default;
};

class XmlOrder {
 public:
  XmlOrder(const XmlGpu&, Rank);  // throws invalid_argument if a wait can never end

  const std::vector<XmlStepPosition>& steps() const { return steps_; }  // topological order, without nops

  // How many of the block's steps come before this step, or are this step.
  std::int32_t known(XmlStepPosition at, std::size_t block) const { return known_[row(at) + block]; }

 private:
  std::vector<XmlStepPosition> waits(XmlStepPosition) const;
  XmlStepPosition signal(XmlStepPosition waiting) const;
  std::size_t row(XmlStepPosition at) const { return (first_[at.block] + at.step) * blocks_.size(); }
  void sort();
  [[noreturn]] void fail(XmlStepPosition, const std::string& why) const;

  Rank rank_;
  const std::vector<XmlThreadBlock>& blocks_;
  std::vector<std::int32_t> index_;  // of blocks, sorted by id
  std::vector<std::size_t> first_;   // first step of each block, plus an end mark
  std::vector<XmlStepPosition> steps_;
  std::vector<std::int32_t> known_;  // a row per step, a column per block
};

}  // namespace trellis::schedule::msccl
