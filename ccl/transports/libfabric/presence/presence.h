// Presence: the liveness and the boards of one communicator. Holds this rank's public state, and what it last heard of
// the others'.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ccl/transports/libfabric/presence/gossip.h"
#include "ccl/transports/libfabric/presence/members.h"
#include "ccl/transports/libfabric/presence/peer.h"
#include "ccl/transports/libfabric/presence/public_state.h"

namespace trellis::ccl::libfabric {

class Presence {
 public:
  // `places`: each rank's number among the members that share a Control, which has these paths.
  Presence(std::uint64_t identity, Rank rank, std::vector<std::size_t> places, std::vector<Member>,
           std::chrono::milliseconds timeout, ControlPaths);

  std::uint64_t identity() const { return identity_; }
  Rank rank() const { return rank_; }
  Rank ranks() const { return static_cast<Rank>(places_.size()); }
  std::size_t place(Rank r) const { return places_[static_cast<std::size_t>(r)]; }
  const Member& member(Rank r) const { return members_[static_cast<std::size_t>(r)]; }
  std::string host(Rank r) const { return one_host_ ? "" : member(r).host; }  // empty: all ranks share one

  void change(const std::function<void(PublicState&)>&);  // of this rank; tells nobody
  // The same, and tells the others: in a large communicator its neighbours, and those it has heard of.
  void announce(const std::function<void(PublicState&)>&);
  void publish(const std::function<void(PublicState&)>&);  // the same, and its neighbours pass it on
  PublicState state(Rank) const;
  Activity activity(Rank) const;
  std::uint32_t posts(Rank) const;
  bool left(Rank) const;
  bool alive(Rank);
  std::chrono::milliseconds silence(Rank);  // for which it has not answered, unless its process is known to have ended
  bool cut_off();                           // most ranks do not answer, or can't be reached
  std::chrono::milliseconds timeout() const { return timeout_; }
  Deadline heard(Rank) const;                         // last time
  std::chrono::milliseconds longest_silence() const;  // of a path, before another is tried
  void come();
  std::vector<Rank> not_joined();  // of those of whom this is to know
  Outcome outcome() const { return outcome_.load(); }
  Outcome settle(Outcome);                          // by rank 0
  Rank missing() const { return missing_.load(); }  // the first, as rank 0 told when it dropped the joining; -1: none
  Rank lost() const { return lost_.load(std::memory_order_relaxed); }
  Rank heard_by_others() const;  // the rank that the lost one had taken for lost; -1: none
  Rank aborted() const { return aborted_.load(std::memory_order_acquire); }
  RailSet rails_left() const { return RailSet(rails_left_.load(std::memory_order_acquire)); }  // by any rank
  RailSet rails_left_by(Rank) const;
  RailCounts arrived_at(Rank) const;  // of what this has sent
  void mark_lost(Rank);
  void mark_aborted();
  void leave();  // there is something to tell until those who are told have answered

  void ask(Rank, std::chrono::milliseconds apart = {});  // for its state, soon, unless that was not long ago
  std::uint32_t asked(Rank) const;                       // how often
  void ask_around(std::chrono::milliseconds apart);      // those that matter, each at most so often
  bool answered(Rank, std::uint32_t ask) const;          // it has, or can't any more
  std::uint32_t begin_survey();                          // of a large communicator: all are to tell what they do
  bool surveyed(Rank, std::uint32_t survey) const;
  std::vector<Rank> take_owed();  // for the Control: the peers to whom something is to be told, which is written next
  int path(Rank) const;           // over which it is told
  void begin_on(Rank, int path);  // the path that works, where that is known
  bool has_to_tell();             // to those who can be reached
  std::size_t write_for(Rank, int path, std::size_t room, std::vector<std::byte>& into);
  void put_off(Rank);                       // it could not be told yet
  void telling(Rank, int path);             // the message is on its way
  void told(Rank, int path, int error);     // it has gone, or failed
  bool hear(const PublicState&, int path);  // false: a rank told it to another one, or has come before
  void nobody_listens(std::size_t place);   // where one of the ranks had its process
  void set_stuck(Rank, Deadline since);  // data to it have not arrived since then, though it was asked; none: they do
  std::function<RailCounts(Rank)> arrivals;  // of data, by rank; set before anything is heard
  void set_progress(std::function<void()>);  // called by the Control's thread, so that data go on while nobody waits
  void progress();

 private:
  Peer& peer(Rank r) { return peers_[static_cast<std::size_t>(r)]; }
  const Peer& peer(Rank r) const { return peers_[static_cast<std::size_t>(r)]; }
  void owe_locked(Rank);
  void owe_all_locked();
  void publish_locked();
  void relay_locked(Rank to, int path, std::size_t room);
  void hear_relayed(Rank by, std::span<const std::byte>);
  bool hear_of_end(const PublicHead&);
  void turn_where_silent(Deadline now);
  void turn(Rank, int path, Deadline now);
  std::chrono::nanoseconds silence_locked(Rank, Deadline now);
  bool is_neighbour(Rank) const;  // its process can be seen from here
  bool answers_locked(Rank, Deadline now);
  bool suspect_locked(const PublicHead&);
  void judge_locked(Deadline now);
  void ask_locked(Rank, Deadline now);

  const std::uint64_t identity_;
  const Rank rank_;
  const std::vector<std::size_t> places_;
  const std::vector<Member> members_;  // by rank
  const std::chrono::milliseconds timeout_;
  const ControlPaths paths_;
  Gossip gossip_;
  bool one_host_ = true, come_ = false;
  std::atomic<Rank> lost_ = -1, aborted_ = -1, missing_ = -1;
  std::atomic<Outcome> outcome_ = Outcome::open;
  std::atomic<std::uint64_t> rails_left_ = 0;  // a RailSet
  mutable std::mutex mutex_;
  PublicState mine_;
  std::vector<Peer> peers_;
  std::vector<Rank> owed_;
  Deadline looked_for_silence_ = {}, suspected_ = {};  // none: no suspicion is open
  std::mutex progress_mutex_;
  std::function<void()> progress_;
};

}  // namespace trellis::ccl::libfabric
