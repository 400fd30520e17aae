// Presence: the liveness and the boards of one communicator. Holds this rank's public state, and what it last heard of
// the others'.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ccl/transports/libfabric/presence/members.h"
#include "ccl/transports/libfabric/presence/public_state.h"
#include "ccl/transports/process.h"

namespace trellis::ccl::libfabric {

constexpr int most_paths = 2;  // of control: endpoints on the interfaces of as many rails

class Presence {
 public:
  // `places`: each rank's number among the members that share a Control, which has so many paths.
  Presence(std::uint64_t identity, Rank rank, std::vector<std::size_t> places, std::vector<Member>,
           std::chrono::milliseconds timeout, int paths);

  std::uint64_t identity() const { return identity_; }
  Rank rank() const { return rank_; }
  Rank ranks() const { return static_cast<Rank>(places_.size()); }
  std::size_t place(Rank r) const { return places_[static_cast<std::size_t>(r)]; }
  const Member& member(Rank r) const { return members_[static_cast<std::size_t>(r)]; }
  std::string host(Rank r) const { return one_host_ ? "" : member(r).host; }  // empty: all ranks share one

  void change(const std::function<void(PublicState&)>&);  // of this rank; tells nobody
  // The same, and tells the others; in a large communicator only those it has heard of, unless it matters to all.
  void announce(const std::function<void(PublicState&)>&, bool to_all = false);
  PublicState state(Rank) const;
  Activity activity(Rank) const;
  std::uint32_t posts(Rank) const;
  bool left(Rank) const;
  bool alive(Rank);
  Deadline heard(Rank) const;  // last time
  std::vector<Rank> not_joined() const;
  Outcome outcome() const { return outcome_.load(); }
  Outcome settle(Outcome);                          // by rank 0
  Rank missing() const { return missing_.load(); }  // the first, as rank 0 told when it dropped the joining; -1: none
  Rank lost() const { return lost_.load(std::memory_order_relaxed); }
  Rank aborted() const { return aborted_.load(std::memory_order_acquire); }
  std::uint8_t rails_left() const { return rails_left_.load(std::memory_order_acquire); }  // by any rank
  std::uint8_t rails_left_by(Rank) const;
  RailCounts arrived_at(Rank) const;  // of what this has sent
  void mark_lost(Rank);
  void mark_aborted();

  void ask(Rank);                                    // for its state, soon
  std::uint32_t asked(Rank) const;                   // how often
  void ask_around(std::chrono::milliseconds apart);  // those that matter, each at most so often
  bool answered(Rank, std::uint32_t ask) const;      // it has, or can't any more

  // For the Control. The peers to whom something is to be told; each is taken off when it is written for.
  std::vector<Rank> take_owed();
  int path(Rank) const;      // over which it is told
  bool has_to_tell() const;  // to those who can be reached
  std::size_t write_for(Rank, std::vector<std::byte>& into);
  void owe(Rank);
  void telling(Rank, int path);          // the message is on its way
  void told(Rank, int path, int error);  // it has gone, or failed
  void hear(const PublicState&, int path);
  std::function<RailCounts(Rank)> arrivals;  // of data, by rank; set before anything is heard

  // Called by the Control's thread now and then, so that data go on while nobody waits for them.
  void set_progress(std::function<void()>);
  void progress();

 private:
  struct Peer {
    PublicState state;
    Deadline heard = {};                            // last time
    Deadline asked = {};                            // last time
    Deadline unanswered = {};                       // first time that it was asked since it was heard
    std::array<Deadline, most_paths> failing = {};  // since when messages to it fail, by path
    Deadline repeat = {};                           // when the one that failed is sent again
    std::uint32_t asks = 0, answers = 0;            // the number of asks of it; the last that it answered
    std::uint32_t to_answer = 0;                    // the last ask of its own
    Deadline told = {};                             // last time that a message to it was begun
    Deadline turned = {};                           // when it took its path
    int path = 0;
    std::uint8_t in_flight = 0;  // a bit for each path
    bool owed = false, to_ask = false;
    bool knows_left = false;  // it was told that this rank has left
    std::shared_ptr<Process> process;
  };
  Peer& peer(Rank r) { return peers_[static_cast<std::size_t>(r)]; }
  const Peer& peer(Rank r) const { return peers_[static_cast<std::size_t>(r)]; }
  void owe_locked(Rank);
  void turn_where_silent(Deadline now);
  void turn(Peer&, int path, Deadline now) const;
  bool fails(const Peer&, Deadline now) const;  // it can't be reached
  void ask_locked(Rank, Deadline now);

  const std::uint64_t identity_;
  const Rank rank_;
  const std::vector<std::size_t> places_;
  const std::vector<Member> members_;  // by rank
  const std::chrono::milliseconds timeout_;
  const int paths_;
  bool one_host_ = true;
  std::atomic<Rank> lost_ = -1, aborted_ = -1, missing_ = -1;
  std::atomic<Outcome> outcome_ = Outcome::open;
  std::atomic<std::uint8_t> rails_left_ = 0;
  mutable std::mutex mutex_;
  PublicState mine_;
  std::vector<Peer> peers_;
  std::vector<Rank> owed_;
  Deadline looked_for_silence_ = {};
  std::mutex progress_mutex_;
  std::function<void()> progress_;
};

}  // namespace trellis::ccl::libfabric
