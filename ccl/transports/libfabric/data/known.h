// What the data path knows of another rank: where its wires are, once it has told, and until then when it is asked; how
// what is sent to it arrives.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "ccl/errors.h"
#include "ccl/transports/libfabric/data/overdue.h"
#include "ccl/transports/libfabric/wire/library.h"

namespace trellis::ccl::libfabric {

struct Known {
  std::vector<fi_addr_t> addresses = {};  // by rail; FI_ADDR_UNSPEC: it has not told
  Arriving arriving = {};
  bool moved = true;  // it receives packets over the same rail as this rank

  // Ever later: where all ranks meet all others at once, the answers take long on a busy machine, and further asks
  // would hold them up.
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
