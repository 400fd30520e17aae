// A pool of flows that share one resource and use nothing else, queued in the order of their ends. All have the same
// rate, so one count of what each has got serves all of them, and a start or an end costs about the same however many
// flows there are.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

#include "sim/cluster/network/network.h"

namespace trellis::sim {

class FairShareQueue {
 public:
  struct Member {
    Work until = 0;  // it ends when each flow has got this much
    std::uint32_t flow = 0, weight = 0;
    bool operator<(const Member& o) const { return until > o.until; }  // the first to end is the greatest
  };
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  std::uint32_t watched = none;  // the flow that ends first: only its end is in the queue of ends

  void open(Rate capacity, Time now) {
    assert(members_.empty());
    capacity_ = capacity, since_ = now, got_ = 0, weight_ = 0, rate_ = 0, watched = none;
  }

  // Advances the pool to `now`; later changes count from there.
  void catch_up(Time now) {
    got_ += static_cast<Work>(rate_) * static_cast<Work>(now - since_);
    since_ = now;
  }

  void add(std::uint32_t flow, Work left, std::uint32_t weight) {
    members_.push_back({got_ + left, flow, weight});
    std::ranges::push_heap(members_, std::less<>());
    share(weight);
  }

  void drop_first() {
    std::ranges::pop_heap(members_, std::less<>());
    const std::int64_t weight = members_.back().weight;
    members_.pop_back();
    share(-weight);
  }

  void close() { members_.clear(); }

  const std::vector<Member>& members() const { return members_; }
  const Member& first() const { return members_.front(); }
  bool first_has_ended() const { return !members_.empty() && first().until <= got_; }
  Work left(const Member& m) const { return m.until - got_; }
  Time end(const Member& m) const { return later(since_, time_of(left(m), rate_)); }
  Rate rate() const { return rate_; }

 private:
  void share(std::int64_t weight) {
    weight_ += weight;
    if (weight_ > 0) rate_ = std::max<Rate>(capacity_ / weight_, 1);
  }

  std::vector<Member> members_;  // a heap
  Rate capacity_ = 0, rate_ = 0;
  std::int64_t weight_ = 0;
  Work got_ = 0;  // by each flow since the pool was opened
  Time since_ = 0;
};

}  // namespace trellis::sim
