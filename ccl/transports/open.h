// Makes a rank's transport. All ranks call it with the same store; it returns when all have joined.
#pragma once

#include <memory>

#include "ccl/config.h"
#include "ccl/store.h"
#include "ccl/transport.h"
#include "device/device.h"

namespace trellis::ccl {

struct Joining {
  Rank rank = 0;
  Rank ranks = 1;
  Config config = {};
  device::Device* device = nullptr;  // whose memory the peers may read directly
  Deadline deadline = {};
};

// Channels that a schedule may use at once; send and recv have a lane of their own.
inline constexpr int channel_lanes = 4;

std::unique_ptr<Transport> open_loopback(std::shared_ptr<Store>, const Joining&);  // ranks are threads of a process
std::unique_ptr<Transport> open_shared_memory(std::shared_ptr<Store>, const Joining&);  // processes of a host

// The one that the configuration names, or the usual one.
inline constexpr std::string_view usual_transport = "shared_memory";
std::unique_ptr<Transport> open_transport(std::shared_ptr<Store>, const Joining&);

}  // namespace trellis::ccl
