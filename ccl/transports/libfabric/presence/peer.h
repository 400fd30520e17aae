// What a rank knows of another over the control path, and what it has yet to tell it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "ccl/store.h"
#include "ccl/transports/libfabric/presence/gossip.h"
#include "ccl/transports/libfabric/presence/public_state.h"
#include "ccl/transports/libfabric/presence/replay_window.h"
#include "ccl/transports/process.h"

namespace trellis::ccl::libfabric {

// The control paths to a peer: wires that connect, and datagrams.
struct ControlPaths {
  int all = 1;
  int datagrams = -1;  // the number of that path, the last; -1: there is none
};

struct Peer {
  PublicState state;                              // the latest, whether it or another rank told it
  std::uint64_t version = 0;                      // of the latest that it told itself
  std::uint64_t messages = 0;                     // to it
  ReplayWindow came;                              // from it
  Deadline heard = {};                            // last time
  Deadline asked = {};                            // last time
  Deadline unanswered = {};                       // first time that it was asked since it was heard
  Clock::duration round = {};                     // that the last answer took
  std::array<Deadline, most_paths> failing = {};  // since when messages to it fail, by path
  Deadline repeat = {};                           // when the one that failed is sent again
  std::uint32_t asks = 0, answers = 0;            // the number of asks of it; the last that it answered
  std::uint32_t to_answer = 0;                    // the last ask of its own
  Deadline told = {};                             // last time that a message to it was begun
  Deadline turned = {};                           // when it took its path
  int path = 0;
  Deadline refused = {};        // when a fresh connection to its process was first refused, since it was heard
  bool ended = false;           // it was refused again, so its process is known to have ended
  std::uint64_t data_came = 0;  // messages and pieces of its data, when this looked last
  Deadline data_heard = {};     // when that had changed
  Deadline stuck = {};          // since when data to it do not arrive
  std::uint8_t in_flight = 0;   // a bit for each path
  bool owed = false, to_ask = false;
  bool knows_left = false;             // it was told that this rank has left
  std::uint32_t asked_as_it_left = 0;  // the ask, of which the answer tells that it has heard that
  std::shared_ptr<Process> process;

  // Messages to it have failed for long enough, over every path.
  bool can_not_be_reached(const ControlPaths& paths, Deadline now) const {
    constexpr std::chrono::milliseconds sure_it_fails{300};
    return std::all_of(failing.begin(), failing.begin() + paths.all, [&](Deadline since) {
      return since != Deadline() && since > heard && now - since > sure_it_fails;
    });
  }
};

}  // namespace trellis::ccl::libfabric
