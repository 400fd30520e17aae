// What the data path knows of another rank: its wires' addresses, or when to ask for them next.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "ccl/errors.h"
#include "ccl/transports/libfabric/wire/library.h"

namespace trellis::ccl::libfabric {

struct PeerAddresses {
  std::vector<fi_addr_t> addresses = {};  // by rail; FI_ADDR_UNSPEC: the rank has not told it
  bool moved = true;                      // it has moved to the rail over which this rank now sends packets

  // Asks less and less often: if all ranks meet all others at once, answers take long on a busy machine, and more
  // requests would delay them.
  bool is_to_be_asked(Deadline now) {
    constexpr std::chrono::milliseconds longest{2000};
    if (now < again_) return false;
    again_ = now + patience_;
    patience_ = std::min(2 * patience_, longest);
    return true;
  }

 private:
  Deadline again_ = {};
  std::chrono::milliseconds patience_{50};
};

}  // namespace trellis::ccl::libfabric
