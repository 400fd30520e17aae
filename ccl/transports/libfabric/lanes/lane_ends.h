// The ends of a communicator's lanes, by rank and lane. Each is made when it is first asked for.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl::libfabric {

class DataPath;
class LaneSender;
class LaneReceiver;

class LaneEnds {
 public:
  LaneEnds(DataPath&, Rank ranks, int lanes);
  ~LaneEnds();

  int lanes() const { return lanes_; }  // of each rank
  LaneSender& sender(Rank to, int lane);
  LaneReceiver& receiver(Rank from, int lane);
  LaneReceiver* known_receiver(Rank from, int lane) const { return receivers_[index(from, lane)].get(); }

  std::size_t memory_bytes() const;

  // Whether `f` is true of any end that there is. Both kinds of end are passed to it.
  template <class F>
  bool any(const F& f) const {
    const auto there = [&](const auto& end) { return end && f(*end); };
    return std::ranges::any_of(receivers_, there) || std::ranges::any_of(senders_, there);
  }
  template <class F>
  void each(const F& f) const {
    for (const auto& end : senders_)
      if (end) f(*end);
    for (const auto& end : receivers_)
      if (end) f(*end);
  }
  template <class F>
  void each_of(Rank r, const F& f) const {
    for (int lane = 0; lane < lanes_; ++lane) {
      if (const auto& end = senders_[index(r, lane)]) f(*end);
      if (const auto& end = receivers_[index(r, lane)]) f(*end);
    }
  }

 private:
  std::size_t index(Rank r, int lane) const {
    return static_cast<std::size_t>(r) * static_cast<std::size_t>(lanes_) + static_cast<std::size_t>(lane);
  }

  DataPath& path_;
  const int lanes_;
  std::vector<std::unique_ptr<LaneSender>> senders_;
  std::vector<std::unique_ptr<LaneReceiver>> receivers_;
};

}  // namespace trellis::ccl::libfabric
