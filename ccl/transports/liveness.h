// Liveness: the part of a transport through which ranks see what the others do, and whether they are there at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ccl/errors.h"

namespace trellis::ccl {

// What a rank is doing. Other ranks read it when something takes too long.
struct RankActivity {
  std::uint64_t operation = 0;  // number of operations started on this communicator
  std::uint64_t count = 0;
  std::uint64_t heartbeat = 0;            // increases while the rank waits
  std::uint64_t heartbeat_elsewhere = 0;  // increases while it waits in another communicator of the family
  std::int32_t step = -1;
  Rank waits_for = -1;
  Rank root = 0;
  // Place of the rank that it waits for in another communicator of the family: that rank's number in the family's first
  // communicator; -1: it waits in no other one.
  Rank elsewhere = -1;
  std::uint8_t divides = 0;  // MembershipNotice::Call that it is in; the other fields then tell its last operation
  std::uint8_t collective = 0;
  std::uint8_t type = 0;
  std::uint8_t wire = 0;  // type of messages
  std::uint8_t reduction = 0;
  bool running = false;
  // Counters that wrap around, for this communicator and for the others of the family. `moves` counts how often data
  // had moved when this rank published its activity; `waits`, the calls in which it waited for long enough to publish
  // it.
  std::uint16_t moves = 0, moves_elsewhere = 0;
  std::uint16_t waits = 0, waits_elsewhere = 0;

  bool waits_somewhere() const { return running || elsewhere >= 0; }
};

// What has happened in a wait since it was shown last.
struct WaitProgress {
  bool begun = false;  // the call has begun to wait
  bool moved = false;  // data have moved
};

class Liveness {
 public:
  virtual ~Liveness() = default;
  virtual void show(const RankActivity&) = 0;  // publishes what this rank does
  virtual void rest() = 0;                     // publishes that its operation has ended
  // Publishes only what this rank does in other communicators of the family; any thread may call it.
  virtual void show_elsewhere(Rank place, const WaitProgress&) = 0;
  virtual RankActivity activity(Rank) const = 0;
  // Brings the others' activities up to date, as far as they answer within this time.
  virtual void refresh(std::chrono::milliseconds most) = 0;
  // The same for one rank, from any thread. False: it has not answered, so that what is known of it may be old.
  virtual bool answers(Rank, std::chrono::milliseconds most) = 0;
  virtual bool alive(Rank) = 0;  // false once it has left, or its process is known to have ended
  // How long a rank that is taken for dead because it does not answer has been silent; 0: it is known to have ended, or
  // to have left.
  virtual std::chrono::milliseconds silence(Rank) { return {}; }
  virtual bool cut_off() { return false; }  // this rank hears nothing of most others
  virtual bool stopped(Rank) const = 0;     // its process is known to be stopped, by a signal or a debugger
  virtual bool left(Rank) const = 0;        // it has closed the communicator
  virtual void mark_lost(Rank) = 0;         // tells all ranks
  virtual Rank lost() const = 0;            // the first that was marked; -1: none
  // The rank that the lost one had taken for lost because it did not hear it, though others do; -1: none.
  virtual Rank heard_by_others() const { return -1; }
  virtual void mark_aborted() = 0;        // by this rank
  virtual Rank aborted_by() const = 0;    // the first rank that did; -1: none
  virtual bool aborted_here() const = 0;  // this rank did, first or not
  bool aborted() const { return aborted_by() >= 0; }
  virtual bool over() const = 0;                 // a rank is lost or has aborted
  virtual std::int64_t process(Rank) const = 0;  // process id on its host
  virtual std::string host(Rank) const = 0;      // name of its host; empty: all ranks share one
};

}  // namespace trellis::ccl
