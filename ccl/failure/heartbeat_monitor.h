// How long each rank has shown no change. A rank that waits in an operation or a split, of this communicator or of
// another one of the family, shows a heartbeat; one that has stopped does not.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "ccl/transports/transport.h"

namespace trellis::ccl {

class HeartbeatMonitor {
 public:
  explicit HeartbeatMonitor(std::chrono::nanoseconds timeout);
  void expect(Rank ranks) { ranks_.reserve(static_cast<std::size_t>(ranks)); }  // look() then allocates no memory
  void restart() { ranks_.clear(); }
  void look(const Transport&, Deadline now);      // call it regularly; changes between two calls are missed
  void look_now(const Transport&, Deadline now);  // the same, however short ago the last look was
  // Data have moved here: every rank that is in an operation counts as having changed now.
  void data_moved(Deadline now);
  void excuse(std::chrono::nanoseconds);  // counts this time against no rank: this rank itself did not look

  // The time within which a healthy rank shows a heartbeat, even on an overloaded machine.
  std::chrono::nanoseconds enough() const { return enough_; }
  // A rank that has not looked at the others for this long was itself stopped, or had no core.
  std::chrono::nanoseconds absence() const { return absence_; }
  // For how long this rank has seen no change of that one.
  std::chrono::nanoseconds unchanged(Rank, Deadline now) const;
  // True if this rank has seen data move there in the last `time`.
  bool moved(Rank, Deadline now, std::chrono::nanoseconds time) const;
  // The number of calls, in any communicator of the family, in which that rank has begun to wait since data last moved
  // on this rank.
  int calls(Rank) const;
  // The last few ranks, as places, for which that rank was seen to wait in other communicators of the family.
  std::span<const Rank> waited_elsewhere(Rank) const;
  // The longest time for which any rank has been in no operation at all without having reached `operation`.
  std::chrono::nanoseconds longest_absence(const Transport&, std::uint64_t operation, Deadline now) const;

 private:
  struct Seen {
    std::uint64_t heartbeats = 0, operation = 0;
    bool occupied = false;
    std::uint16_t moves = 0;
    std::uint16_t waits = 0, waits_before = 0;  // calls in which it has waited: by now, and when data last moved here
    Deadline since = {};
    Deadline moved = {};  // when its data were last seen to move
    std::array<Rank, 4> elsewhere = {};
    std::size_t waited_elsewhere = 0;  // number of entries of `elsewhere` in use
    bool is(const RankActivity&) const;
    void note_elsewhere(Rank place);
  };
  const std::chrono::nanoseconds enough_, absence_, apart_;
  Deadline looked_ = {};
  std::vector<Seen> ranks_;  // empty: not started
};

// For how long before this call the waiting thread did not look at the other ranks, because it was stopped or had no
// core. They are not to blame for what it did not see in that time. Zero if that is less than `least`.
std::chrono::nanoseconds away_for(Deadline now, std::chrono::nanoseconds least, Deadline waiting_since);
void looks_now();  // the waiting thread has looked meanwhile: away_for() counts from now

}  // namespace trellis::ccl
