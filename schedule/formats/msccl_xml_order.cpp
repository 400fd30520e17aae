#include "schedule/formats/msccl_xml_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "text/refuse.h"

namespace trellis::schedule::msccl {

XmlOrder::XmlOrder(const XmlGpu& gpu, Rank rank)
    : rank_(rank), blocks_(gpu.blocks), index_(gpu.blocks.size()), first_{0} {
  std::iota(index_.begin(), index_.end(), 0);
  std::ranges::sort(index_, {}, [&](std::int32_t i) { return blocks_[i].id; });
  for (const XmlThreadBlock& block : blocks_) first_.push_back(first_.back() + block.steps.size());
  known_.assign(first_.back() * blocks_.size(), 0);
  sort();
}

void XmlOrder::fail(XmlStepPosition at, const std::string& why) const {
  text::refuse("gpu {} tb {} step {} {}", rank_, blocks_[at.block].id, at.step, why);
}

// A block signals waiting blocks only at steps with hasdep, and never at nops.
XmlStepPosition XmlOrder::signal(XmlStepPosition waiting) const {
  const XmlStep& step = blocks_[waiting.block].steps[waiting.step];
  const auto found =
      std::ranges::lower_bound(index_, step.wait_block, {}, [&](std::int32_t i) { return blocks_[i].id; });
  if (found == index_.end() || blocks_[*found].id != step.wait_block)
    fail(waiting, fmt::format("waits for thread block {}, which does not exist", step.wait_block));
  const auto& steps = blocks_[*found].steps;
  if (static_cast<std::size_t>(step.wait_step) >= steps.size())
    fail(waiting, fmt::format("waits for tb {} step {}, which does not exist", step.wait_block, step.wait_step));
  for (auto i = static_cast<std::size_t>(step.wait_step); i < steps.size(); ++i)
    if (steps[i].waited_for && steps[i].type != XmlStepType::nop) return {*found, static_cast<std::int32_t>(i)};
  fail(waiting,
       fmt::format("waits for tb {} step {}, but that block lets nobody know: neither it nor a later step has hasdep",
                   step.wait_block, step.wait_step));
}

void XmlOrder::sort() {
  // A wait for a step of the same block either holds by the block's own order, or never ends.
  std::vector<XmlStepPosition> target(first_.back());
  std::vector<std::vector<XmlStepPosition>> waiting(first_.back());  // by the step waited for
  const auto id = [&](XmlStepPosition at) { return first_[at.block] + at.step; };
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(blocks_.size()); ++b)
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(blocks_[b].steps.size()); ++i) {
      if (blocks_[b].steps[i].wait_block < 0) continue;
      target[id({b, i})] = signal({b, i});
      waiting[id(target[id({b, i})])].push_back({b, i});
    }
  std::vector<std::int32_t> next(blocks_.size(), 0);  // step of each block
  std::vector<std::int32_t> open;                     // blocks that may continue
  std::vector<bool> done(first_.back());
  for (auto b = static_cast<std::int32_t>(blocks_.size()); b-- > 0;) open.push_back(b);
  while (!open.empty()) {
    const std::int32_t b = open.back();
    open.pop_back();
    while (next[b] < static_cast<std::int32_t>(blocks_[b].steps.size())) {
      const XmlStepPosition at{b, next[b]}, wait = target[id(at)];
      if (wait.block >= 0 && !done[id(wait)]) break;
      const auto mine = known_.begin() + static_cast<std::ptrdiff_t>(row(at));
      const auto join = [&](XmlStepPosition other) {
        const auto theirs = known_.begin() + static_cast<std::ptrdiff_t>(row(other));
        std::transform(mine, mine + static_cast<std::ptrdiff_t>(blocks_.size()), theirs, mine,
                       [](std::int32_t x, std::int32_t y) { return std::max(x, y); });
      };
      if (at.step > 0) join({b, at.step - 1});
      if (wait.block >= 0) join(wait);
      mine[b] = at.step + 1;
      done[id(at)] = true;
      if (blocks_[b].steps[at.step].type != XmlStepType::nop) steps_.push_back(at);
      ++next[b];
      for (const XmlStepPosition other : waiting[id(at)])
        if (other.block != b && next[other.block] == other.step) open.push_back(other.block);
    }
  }
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(blocks_.size()); ++b)
    if (next[b] < static_cast<std::int32_t>(blocks_[b].steps.size()))
      fail({b, next[b]}, fmt::format("waits for tb {} step {}, which is never reached: a deadlock",
                                     blocks_[b].steps[next[b]].wait_block, blocks_[b].steps[next[b]].wait_step));
}

}  // namespace trellis::schedule::msccl
