// Opens a rank's transport. All ranks call it with the same store; it returns when all have joined.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "ccl/config.h"
#include "ccl/store.h"
#include "ccl/transports/transport.h"
#include "device/device.h"

namespace trellis::ccl {

struct JoinOptions {
  Rank rank = 0;
  Rank ranks = 1;
  Config config = {};
  device::Device* device = nullptr;  // its memory can be read by the peers directly
  Deadline deadline = {};
  // Called repeatedly while ranks are missing. An exception from it ends the joining for all ranks. Not set: PeerLost
  // is thrown at the deadline.
  std::function<void(std::span<const Rank> missing)> waiting = {};
  // For a communicator that is split from another: the other's transport, and the new ranks' numbers there.
  const Transport* parent = nullptr;
  std::span<const Rank> group = {};
};

// Another rank has ended the joining.
struct JoinAborted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Channels that a schedule may use at once. send and recv have a lane of their own.
inline constexpr int channel_lanes = 4;

// Opens the transport that the configuration names, or the usual one.
inline constexpr std::string_view usual_transport = "shared_memory", usual_across_hosts = "hybrid";
std::unique_ptr<Transport> open_transport(std::shared_ptr<Store>, const JoinOptions&);

}  // namespace trellis::ccl
