// JoinBarrier: whether all ranks of a new communicator have come. Rank 0 learns it, and all learn it from rank 0. The
// caller holds the lock of the Presence that this is a part of.
#pragma once

#include <vector>

#include "ccl/transports/libfabric/presence/published_states.h"

namespace trellis::ccl::libfabric {

class JoinBarrier {
 public:
  JoinBarrier(Rank rank, Rank ranks, const PublishedStates&, ControlQueue&);

  void come();
  void give_up();                   // wants the joining to be dropped
  std::vector<Rank> not_joined();   // the missing ranks, of those that this one waits for
  JoinOutcome settle(JoinOutcome);  // rank 0 decides so, unless it has decided; returns the decision
  JoinOutcome outcome() const { return outcome_; }
  Rank missing() const { return missing_; }  // the first that rank 0 missed when it dropped the joining; -1: none

  bool hear(const PublicStateHeader&);   // true: there is something new in it
  void write(PublicStateHeader&) const;  // its part of a message

 private:
  const Rank rank_, ranks_;
  const PublishedStates& states_;
  ControlQueue& queue_;
  bool come_ = false, joined_ = false, gives_up_ = false;
  Rank absent_ = -1, missing_ = -1;
  JoinOutcome outcome_ = JoinOutcome::open;
};

}  // namespace trellis::ccl::libfabric
