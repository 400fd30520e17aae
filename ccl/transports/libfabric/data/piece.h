// Pieces of large messages on their way.
#pragma once

#include "ccl/store.h"
#include "ccl/transports/libfabric/data/packet.h"
#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

class LaneSender;

// One that is sent, with all that is needed to send it once more.
struct PieceOut : Operation {
  LaneSender* sender = nullptr;
  Grant grant = {};
  std::uint32_t piece = 0;
  Local bytes = {};
  int rail = 0;
  Deadline posted = {};
  bool under_way = false;
};
struct PieceIn : Operation {
  std::uint32_t number = 0;
};

}  // namespace trellis::ccl::libfabric
