// Buckets of a radix heap for events far ahead: a node is in the bucket of the highest bit in which its time differs
// from the base.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/hardware/time/units.h"

namespace trellis::sim {

// A Node has a time, not before the base. Nodes of one time are in one bucket, in the order of insertion.
template <class Node>
class RadixBuckets {
 public:
  bool empty() const { return occupied_ == 0; }
  std::size_t size() const { return size_; }
  Time least() const { return least_[lowest()]; }

  void put(const Node& node) {
    const auto bucket = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(node.time ^ base_)));
    least_[bucket] = buckets_[bucket].empty() ? node.time : std::min(least_[bucket], node.time);
    buckets_[bucket].push_back(node);
    occupied_ |= std::uint64_t{1} << bucket;
    ++size_;
  }

  void set_base(Time base) { base_ = base; }  // only while empty

  const std::vector<Node>& first() const { return buckets_[lowest()]; }  // the bucket with the earliest nodes
  bool first_has_one_time() const { return lowest() <= 1; }
  Time first_end() const {  // times in the first bucket, and only those, are before this
    const std::size_t shift = std::max<std::size_t>(lowest(), 1) - 1;
    const std::uint64_t end = ((static_cast<std::uint64_t>(least()) >> shift) + 1) << shift;
    return static_cast<Time>(std::min(end, static_cast<std::uint64_t>(forever)));
  }

  void drop_first() {
    size_ -= first().size();
    buckets_[lowest()].clear();
    occupied_ &= occupied_ - 1;
  }

  // Spreads the first bucket over the buckets below it.
  void spread_first() {
    base_ = least();
    spread_.swap(buckets_[lowest()]);
    occupied_ &= occupied_ - 1;
    size_ -= spread_.size();
    for (const Node& node : spread_) put(node);
    spread_.clear();
  }

 private:
  std::size_t lowest() const { return static_cast<std::size_t>(std::countr_zero(occupied_)); }

  std::array<std::vector<Node>, 64> buckets_;
  std::array<Time, 64> least_{};  // least time in each bucket that is not empty
  std::uint64_t occupied_ = 0;    // a bit for each bucket
  std::size_t size_ = 0;
  Time base_ = 0;
  std::vector<Node> spread_;  // a member to keep its memory
};

}  // namespace trellis::sim
