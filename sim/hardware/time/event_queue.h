// A queue of events, ordered by time. Events of one time keep the order in which they were pushed.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

#include "sim/hardware/time/radix_buckets.h"
#include "sim/hardware/time/units.h"

namespace trellis::sim {

// The next few events are kept sorted, the others in a radix heap. Events should be small; they are copied.
template <class Event>
class EventQueue {
 public:
  bool empty() const { return size() == 0; }
  std::size_t size() const { return near_.size() - head_ + far_.size(); }
  Time now() const { return now_; }
  Time next() const { return head_ < near_.size() ? near_[head_].time : far_.empty() ? forever : far_.least(); }

  // The time is not before now, and before `forever`.
  void push(Time time, const Event& event) {
    assert(time >= now_ && time < forever);
    if (time < limit_) return put_near({time, event});
    if (!far_.empty()) return far_.put({time, event});
    if (near_.size() - head_ < few) {
      limit_ = time + 1;
      near_.push_back({time, event});
      return;
    }
    far_.set_base(now_);
    far_.put({time, event});
  }

  Event pop() {
    assert(!empty());
    if (head_ == near_.size()) refill();
    const Node first = near_[head_++];
    if (head_ == near_.size()) {
      near_.clear();
      head_ = 0;
    } else if (head_ >= many && 2 * head_ >= near_.size()) {
      near_.erase(near_.begin(), from_head());
      head_ = 0;
    }
    now_ = first.time;
    return first.event;
  }

  void clear() { *this = EventQueue(); }

 private:
  struct Node {
    Time time;
    Event event;
  };
  static constexpr std::size_t few = 32, many = 96;

  auto from_head() { return near_.begin() + static_cast<std::ptrdiff_t>(head_); }

  void put_near(const Node& node) {
    if (near_.size() - head_ > many && (near_.end() - 1 - many)->time > node.time) {
      // Too many events would have to be moved for this one: all later than it go to far_.
      const auto later = [](Time time, const Node& n) { return time < n.time; };
      const auto from = std::upper_bound(from_head(), near_.end(), node.time, later);
      limit_ = from->time;
      if (far_.empty()) far_.set_base(now_);
      std::for_each(from, near_.end(), [this](const Node& n) { far_.put(n); });
      near_.erase(from, near_.end());
    }
    sink(node, head_);
  }

  // Inserts a node behind those of the same time, but not before index `first`.
  void sink(const Node& node, std::size_t first) {
    near_.push_back(node);
    std::size_t at = near_.size() - 1;
    for (; at > first && near_[at - 1].time > node.time; --at) near_[at] = near_[at - 1];
    near_[at] = node;
  }

  // Takes over the earliest buckets. If the first bucket is too full to be sorted, it is first spread over smaller
  // ones.
  void refill() {
    while (far_.first().size() > few && !far_.first_has_one_time()) far_.spread_first();
    do {
      limit_ = far_.first_end();
      const std::size_t sorted = near_.size();
      for (const Node& node : far_.first()) sink(node, sorted);
      far_.drop_first();
    } while (!far_.empty() && near_.size() + far_.first().size() <= few);
  }

  std::vector<Node> near_;  // sorted from head_ on: everything before limit_
  std::size_t head_ = 0;
  RadixBuckets<Node> far_;
  Time limit_ = 0, now_ = 0;
};

}  // namespace trellis::sim
