// FailureDetector: which other ranks have failed, by what this rank heard of them and when. The time is passed in. The
// caller holds the lock of the Presence that this is a part of. While this process is stopped, or has no core, it hears
// nobody: so the time of a long pause between two looks is not counted as silence of any rank. The functions that judge
// a rank call look() first.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "ccl/store.h"
#include "ccl/transports/libfabric/presence/published_states.h"
#include "ccl/transports/libfabric/presence/roster.h"
#include "ccl/transports/process_handle.h"

namespace trellis::ccl::libfabric {

class FailureDetector {
 public:
  FailureDetector(const Roster&, const PublishedStates&, std::chrono::milliseconds timeout, ControlPaths);

  void look(Deadline now);            // to be called often
  void asked(Rank r, Deadline now) {  // for its state
    if (peer(r).unanswered == Deadline()) peer(r).unanswered = now;
  }
  void heard(Rank, int path, Deadline now);
  void sent(Rank, int path, bool well, Deadline now);
  void refused(Rank, Deadline now);                                  // its process has refused a connection
  void set_stuck(Rank r, Deadline since) { peer(r).stuck = since; }  // see Peer::stuck

  bool answers(Rank, Deadline now);                       // the rank answers, or may still do so in time
  bool reachable(Rank, Deadline now);                     // messages to it have not failed for long, over every path
  std::chrono::milliseconds silence(Rank, Deadline now);  // 0 where its process is known to have ended
  bool cut_off(Deadline now);                             // most ranks do not answer, or can't be reached
  Deadline last_heard(Rank r) const { return peer(r).heard; }
  Deadline unanswered(Rank r) const { return peer(r).unanswered; }  // since when an answer is awaited; none: it is not
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  struct Peer {
    Deadline heard = {};                            // last time
    Deadline unanswered = {};                       // first time that it was asked since it was heard
    std::array<Deadline, most_paths> failing = {};  // since when messages to it fail, by path
    Deadline refused = {};        // when a fresh connection to its process was first refused, since it was heard
    bool ended = false;           // it was refused again, so its process is known to have ended
    std::uint64_t data_came = 0;  // how many messages and pieces of its data had come at the last look
    Deadline data_heard = {};     // when that had last changed
    Deadline stuck = {};          // since when no data on their way to it have arrived; none: all have
    std::shared_ptr<ProcessHandle> process;
  };
  Peer& peer(Rank r) { return peers_[static_cast<std::size_t>(r)]; }
  const Peer& peer(Rank r) const { return peers_[static_cast<std::size_t>(r)]; }
  Clock::duration without_sign_of_life(Rank, Deadline now);

  const Roster& roster_;
  const PublishedStates& states_;
  const std::chrono::milliseconds timeout_;
  const int paths_;
  Deadline looked_ = {};
  std::vector<Peer> peers_;
};

}  // namespace trellis::ccl::libfabric
