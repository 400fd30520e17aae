// Puts something between this process's ranks and each wire that they open: a fabric that injects faults, for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

// Which wire it is, of those that a rank opens.
struct WireRole {
  int rail = 0;
  bool control = false;
  std::uint64_t number = 0;  // tells wires of this process apart
};

using WireWrapper = std::function<std::unique_ptr<Wire>(std::unique_ptr<Wire>, const WireRole&)>;

// Wraps the wires that are opened from now on; an empty wrapper wraps none. Not to be called while ranks open wires.
void wrap_wires(WireWrapper);

}  // namespace trellis::ccl::libfabric
