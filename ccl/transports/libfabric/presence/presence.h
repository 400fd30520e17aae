// Presence: what one rank of a communicator and the others know of each other by control messages. Its parts, one for
// each task, read what comes in a message and write what goes into one; one mutex guards them all.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "ccl/transports/libfabric/presence/failure_agreement.h"
#include "ccl/transports/libfabric/presence/join_barrier.h"

namespace trellis::ccl::libfabric {

class Presence {
 public:
  Presence(Roster, std::chrono::milliseconds timeout, ControlPaths);
  const Roster& roster() const { return roster_; }
  const FailureAgreement& verdict() const { return verdict_; }

  // Gives access to the parts, and holds their lock as long as it lives. Meanwhile its thread must not lock the
  // Presence again, not even in the same expression, nor call a function of Presence that is not const.
  class Locked {
   public:
    explicit Locked(Presence& p) : lock_(p.mutex_), presence_(p) {}
    PublishedStates& states() const { return presence_.states_; }
    FailureDetector& detector() const { return presence_.detector_; }
    Heartbeats& heartbeats() const { return presence_.heartbeats_; }
    FailureAgreement& verdict() const { return presence_.verdict_; }
    JoinBarrier& joining() const { return presence_.joining_; }
    ControlQueue& queue() const { return presence_.queue_; }

   private:
    const std::lock_guard<std::mutex> lock_;
    Presence& presence_;
  };
  Locked lock() { return Locked(*this); }

  // For the ControlLink.
  std::vector<Rank> take_owed();  // the ranks to which something is written next
  std::size_t write_for(Rank, int path, std::size_t room, std::vector<std::byte>& into);
  void sending(Rank, int path);              // the message is on its way
  void sent(Rank, int path, int error);      // it has gone, or failed
  bool hear(const PublicState&, int path);   // false: it is for another rank, or a duplicate
  void leave();                              // tells that this rank has left, until those who are told have answered
  bool has_to_tell();                        // there is still something to tell a rank that can be reached
  void retire();                             // once the timeout has passed, it only answers
  void set_progress(std::function<void()>);  // called by the ControlLink's thread, so that data move while nobody waits
  void progress();

 private:
  struct Goodbye {
    bool told = false;      // it was told that this rank has left
    std::uint32_t ask = 0;  // the request whose answer shows that it has heard that
  };
  bool speaks(Deadline now) const;  // whether it repeats what a peer may not have heard
  Goodbye& goodbye(Rank r) { return goodbyes_[static_cast<std::size_t>(r)]; }

  const Roster roster_;
  std::mutex mutex_;
  ControlQueue queue_;
  PublishedStates states_;
  FailureDetector detector_;
  Heartbeats heartbeats_;
  FailureAgreement verdict_;
  JoinBarrier joining_;
  std::vector<Goodbye> goodbyes_;
  Deadline retired_ = {};
  std::mutex progress_mutex_;
  std::function<void()> progress_;
};

}  // namespace trellis::ccl::libfabric
