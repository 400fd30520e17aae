// PublishedStates: the board of a communicator. It holds the state that this rank tells the others, and the latest of
// each other, whether that one or another rank told it. The caller holds the lock of the Presence that this is a part
// of.
#pragma once

#include <functional>
#include <vector>

#include "ccl/transports/libfabric/presence/control_queue.h"
#include "ccl/transports/libfabric/presence/public_state.h"
#include "ccl/transports/libfabric/presence/replay_window.h"

namespace trellis::ccl::libfabric {

class PublishedStates {
 public:
  PublishedStates(std::uint64_t communicator, Rank rank, Rank ranks, ControlQueue&);

  const PublicState& of(Rank r) const { return r == rank_ ? mine_ : peer(r).latest; }
  bool left(Rank r) const { return of(r).head.left; }
  RailSet rails_left_by(Rank r) const { return RailSet(of(r).head.rails_left); }
  void change(const std::function<void(PublicState&)>&);    // changes this rank's state; tells nobody
  void announce(const std::function<void(PublicState&)>&);  // also tells those whom ControlQueue::owe_all() names
  void publish(const std::function<void(PublicState&)>&);   // also has neighbours pass it on
  void spread();                                            // has neighbours pass on this rank's present state

  // `f` counts the data that came from a rank; any thread may call it. Set it before anything is heard.
  void set_arrivals(std::function<RailCounts(Rank)> f) { arrivals_ = std::move(f); }
  RailCounts arrivals(Rank r) const { return arrivals_ ? arrivals_(r) : RailCounts{}; }

  bool accept(const PublicStateHeader&);      // false: it is for another rank, or a duplicate
  void take(const PublicState&);              // a state that was accepted
  PublicStateHeader& begin_message(Rank to);  // its head, to which the other parts of Presence add theirs
  std::size_t write(Rank to, int path, std::size_t room, std::vector<std::byte>& into);

 private:
  struct Peer {
    PublicState latest;
    std::uint64_t version = 0;   // of the latest that came from the rank itself
    std::uint64_t messages = 0;  // number of those sent to it
    ReplayWindow came;           // messages from it
  };
  Peer& peer(Rank r) { return peers_[static_cast<std::size_t>(r)]; }
  const Peer& peer(Rank r) const { return peers_[static_cast<std::size_t>(r)]; }
  void take_relayed_by(Rank, std::span<const std::byte>);
  void relay(Rank to, int path, std::size_t room);

  const Rank rank_;
  ControlQueue& queue_;
  PublicState mine_;
  std::vector<Peer> peers_;
  std::function<RailCounts(Rank)> arrivals_;
};

}  // namespace trellis::ccl::libfabric
