// FailureAgreement: what has failed, as the ranks of a communicator come to agree: a rank is lost or has aborted, or
// rails were left. A rank that hears nothing of another may itself be cut off: so it reports a suspicion, which the
// others judge. Any thread may call the const functions; whoever calls the others holds the lock of the Presence that
// this is a part of.
#pragma once

#include <atomic>

#include "ccl/transports/libfabric/presence/heartbeats.h"

namespace trellis::ccl::libfabric {

class FailureAgreement {
 public:
  FailureAgreement(const Roster&, const PublishedStates&, FailureDetector&, Heartbeats&, ControlQueue&);

  Rank lost() const { return lost_.load(std::memory_order_relaxed); }        // the first lost rank; -1: none
  Rank aborted() const { return aborted_.load(std::memory_order_acquire); }  // the first that aborted; -1: none
  bool over() const { return lost() >= 0 || aborted() >= 0; }
  Rank heard_by_others() const;  // the rank that the lost one had taken for lost; -1: none
  RailSet rails_left() const { return RailSet(rails_left_.load(std::memory_order_acquire)); }  // by any rank

  bool alive(Rank, Deadline now);  // false once it has left, or does not answer
  void mark_lost(Rank, Deadline now);
  void mark_aborted();                                // by this rank
  bool hear(const PublicStateHeader&, Deadline now);  // true: there is something new in it
  void judge(Deadline now);                           // decides the open suspicion, if it can be decided now
  void write(PublicStateHeader&) const;               // its part of a message

 private:
  bool suspect(const PublicStateHeader&, Deadline now);
  bool is_over(Deadline now);  // the time for the open suspicion has passed; only time in which this process ran counts

  const Roster& roster_;
  const PublishedStates& states_;
  FailureDetector& detector_;
  Heartbeats& heartbeats_;
  ControlQueue& queue_;
  std::atomic<Rank> lost_ = -1, aborted_ = -1;
  std::atomic<std::uint64_t> rails_left_ = 0;           // a RailSet
  std::atomic<Rank> suspect_ = -1, suspected_by_ = -1;  // the first suspicion
  Deadline suspected_ = {};                             // when it came; none: it has been judged, or there is none
  Deadline judged_ = {};                                // when judge() last looked at it
  Clock::duration paused_ = {};                         // how long this process has not run since it came
};

}  // namespace trellis::ccl::libfabric
