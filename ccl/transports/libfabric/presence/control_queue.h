// ControlQueue: to which ranks something is to be told, over which path that goes, and what is under way. The caller
// holds the lock of the Presence that this is a part of.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "ccl/transports/libfabric/presence/gossip.h"

namespace trellis::ccl::libfabric {

class ControlQueue {
 public:
  ControlQueue(Rank rank, Rank ranks, ControlPaths, std::chrono::milliseconds timeout);

  void owe(Rank);
  void owe_all();  // all ranks; in a large communicator: the neighbours, and ranks that sent something
  bool owes(Rank r) const { return peer(r).owed; }
  std::vector<Rank> take(Deadline now);            // removes and returns those to whom something can go now
  bool under_way(Rank) const;                      // a message is under way over the path that the rank has now
  void sending(Rank, int path, Deadline);          // the message is on its way
  void sent(Rank, int path, bool well, Deadline);  // it has gone, or failed
  void put_off(Rank);                              // it could not be sent yet
  void heard(Rank, int path, Deadline);

  int path(Rank r) const { return peer(r).path; }
  void begin_on(Rank r, int path) { peer(r).path = path; }  // on a path that is known to work
  struct Turned {
    Rank rank;
    bool lost;  // a message was under way over the former path
  };
  // Fails over for each rank from which nothing comes back, and returns these. `unanswered` tells since when an answer
  // of a rank is awaited; none: no answer is.
  std::vector<Turned> fail_over(const std::function<Deadline(Rank)>& unanswered, Deadline now);
  std::chrono::milliseconds longest_silence() const;  // of a path, before another is tried

  Gossip& gossip() { return gossip_; }  // the news of third ranks

 private:
  struct Peer {
    Deadline repeat = {};  // when a message that failed is sent again
    Deadline begun = {};   // when the last message to it was begun
    Deadline turned = {};  // when it changed to its path
    int path = 0;
    std::uint8_t in_flight = 0;  // a bit for each path
    bool owed = false, was_heard = false;
  };
  Peer& peer(Rank r) { return peers_[static_cast<std::size_t>(r)]; }
  const Peer& peer(Rank r) const { return peers_[static_cast<std::size_t>(r)]; }
  void turn(Rank, int path, Deadline);

  const Rank rank_;
  const ControlPaths paths_;
  const std::chrono::milliseconds timeout_;
  Gossip gossip_;
  std::vector<Peer> peers_;
  std::vector<Rank> owed_;
  Deadline looked_ = {};  // when it last looked for silent paths
};

}  // namespace trellis::ccl::libfabric
