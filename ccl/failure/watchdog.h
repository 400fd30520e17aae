// Watchdog: for how long nothing has changed of what each rank shows. A rank that waits in an operation or a split, of
// this communicator or of another one of the family, shows a heartbeat; one that has stopped does not.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "ccl/transports/transport.h"

namespace trellis::ccl {

class Watchdog {
 public:
  explicit Watchdog(std::chrono::nanoseconds timeout);
  void expect(Rank ranks) { ranks_.reserve(static_cast<std::size_t>(ranks)); }  // looks then ask the heap for nothing
  void restart() { ranks_.clear(); }
  void look(const Transport&, Deadline now);      // call it regularly; changes between two calls are missed
  void look_now(const Transport&, Deadline now);  // the same, however short ago the last look was
  // Data have moved here: whoever is in an operation counts as if it had changed now.
  void data_moved(Deadline now);
  void excuse(std::chrono::nanoseconds);  // this rank itself has not looked for so long

  // A rank that is well shows a heartbeat within this time, even on an overloaded machine.
  std::chrono::nanoseconds enough() const { return enough_; }
  // For how long nothing has changed of it, as far as was seen.
  std::chrono::nanoseconds unchanged(Rank, Deadline now) const;
  // Data have been seen to move there lately: in the last `time`.
  bool moved(Rank, Deadline now, std::chrono::nanoseconds time) const;
  // The calls, of any communicator of the family, in which it has begun to wait since data moved here.
  int calls(Rank) const;
  // Whom it was seen to wait for in other communicators of the family: places, the last few of them.
  std::span<const Rank> waited_elsewhere(Rank) const;
  // The longest time for which a rank has been in no operation at all and has not come as far as this one.
  std::chrono::nanoseconds longest_absence(const Transport&, std::uint64_t operation, Deadline now) const;

 private:
  struct Seen {
    std::uint64_t heartbeats = 0, operation = 0;
    bool occupied = false;
    std::uint16_t moves = 0;
    std::uint16_t waits = 0, waits_before = 0;  // now; when data moved here
    Deadline since = {};
    Deadline moved = {};  // when that was seen last
    std::array<Rank, 4> elsewhere = {};
    std::size_t waited_elsewhere = 0;  // places of it that are filled
    bool is(const Activity&) const;
    void note_elsewhere(Rank place);
  };
  const std::chrono::nanoseconds enough_, apart_;
  Deadline looked_ = {};
  std::vector<Seen> ranks_;  // empty: not started
};

// For how long the calling thread has not come to look at others before this call, though it has waited: it was
// stopped, or had no core, so that what it has not seen says nothing of them. Zero where that is less than `least`.
std::chrono::nanoseconds away_for(Deadline now, std::chrono::nanoseconds least, Deadline waiting_since);
void looks_now();  // it has looked meanwhile

}  // namespace trellis::ccl
