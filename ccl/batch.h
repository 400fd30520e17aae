// The operations of a group, or a single one on a stream, with their communicators' turns.
#pragma once

#include "ccl/inside.h"

namespace trellis::ccl {

// Runs a communicator's own operations one after the other, those of several beside each other, all sends and receives
// first and at once. Used again after clear(), it allocates nothing.
class Batch {
 public:
  Batch() = default;
  ~Batch() { clear(); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void add(Communicator::Inside&, Point&&, device::Stream*);
  void add(Communicator::Inside&, Operation&&, device::Stream*);
  void forget(const Communicator::Inside*);
  bool empty() const { return points_.empty() && operations_.empty(); }
  const std::vector<device::Stream*>& streams() const { return streams_; }  // that it is on, but for null
  device::Device& device() const;

  // When it is handed in. Throws invalid_argument when a rank's messages to itself do not fit its receives.
  void take_turns();
  void hand_to_stream();  // from here on the communicators hear of what fails, since the caller may not
  void run();             // waits for the turns, and for the end of all operations
  void clear();           // gives the turns back, whether or not they were used

 private:
  template <class What>
  struct Issued {
    Communicator::Inside* inside = nullptr;
    What what = {};
  };
  // A communicator's operations.
  struct Strand {
    Communicator::Inside* inside = nullptr;
    std::uint64_t turn = 0;
    std::size_t next = 0;         // of operations_, to be looked at
    bool has_met_points = false;  // sends and receives have been begun, if there are any
    bool open = false;            // an operation is under way
  };
  void use(device::Stream*);
  void take_turn(Communicator::Inside*);
  bool open_next(Strand&);  // false: nothing is left
  bool begin_next(Strand&);
  bool over(const Strand& s) const { return s.has_met_points && s.next == operations_.size() && !s.open; }
  void end_all(const Communicator::Inside* at_fault);

  std::vector<Issued<Point>> points_;
  std::vector<Point> own_;  // room for those of points_ by which one rank sends to itself
  std::vector<Issued<Operation>> operations_;
  std::vector<device::Stream*> streams_;
  std::vector<Strand> strands_;
  bool on_stream_ = false, awaited_ = false;  // it is to be run on one; and has not been
};

}  // namespace trellis::ccl
