// Heartbeats: this rank asks others for their state, and counts their answers; a survey asks all of a large
// communicator. The caller holds the lock of the Presence that this is a part of.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "ccl/transports/libfabric/presence/failure_detector.h"

namespace trellis::ccl::libfabric {

class Heartbeats {
 public:
  Heartbeats(const Roster&, PublishedStates&, FailureDetector&, ControlQueue&);

  void ask(Rank, Deadline now, std::chrono::milliseconds apart = {});  // soon; `apart`: least time since the last one
  void ask_around(Deadline now, std::chrono::milliseconds apart);      // asks the ranks that this one watches
  std::uint32_t asked(Rank r) const { return peer(r).asks; }           // number of the last request to it
  bool answered(Rank r, std::uint32_t ask) const { return r == roster_.rank() || peer(r).answers >= ask; }
  std::uint32_t begin_survey();                     // asks all ranks what they do; returns the survey's number
  bool surveyed(Rank, std::uint32_t survey) const;  // the rank has answered that survey, or has left

  void hear(const PublicStateHeader&, Deadline now);
  void write(PublicStateHeader&) const;  // its part of a message
  void sending(Rank r) { peer(r).to_ask = false; }
  void repeat(Rank);  // a message to it was lost: its request is sent again

 private:
  struct Peer {
    Deadline asked = {};                  // last time
    Clock::duration round = {};           // time that the last answer took
    std::uint32_t asks = 0, answers = 0;  // number of the last request to it; of the last that it answered
    std::uint32_t to_answer = 0;          // number of its own last request
    bool to_ask = false;
  };
  Peer& peer(Rank r) { return peers_[static_cast<std::size_t>(r)]; }
  const Peer& peer(Rank r) const { return peers_[static_cast<std::size_t>(r)]; }
  bool is_time(Rank, Deadline now, Clock::duration apart) const;

  const Roster& roster_;
  PublishedStates& states_;
  FailureDetector& detector_;
  ControlQueue& queue_;
  std::uint32_t survey_ = 0;  // the last in which this rank took part
  std::vector<Peer> peers_;
};

}  // namespace trellis::ccl::libfabric
