// The checksums of a large message as it is sent: one for each run of pieces that a grant has room for.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "ccl/transports/libfabric/data/packet.h"
#include "kernels/types/crc32c.h"

namespace trellis::ccl::libfabric {

class GrantChecksums {
 public:
  void begin() {  // begins another message
    runs_.clear();
    current_ = 0;
  }
  void add(std::span<const std::byte> piece) { current_ = kernels::crc32c(piece, current_); }
  void end_run(const Grant& g) {
    runs_.push_back({{.offset = g.offset, .bytes = g.bytes, .checksum = std::exchange(current_, 0)}});
  }
  void begin_again() {  // call it when packets may be lost
    for (QueuedChecksum& r : runs_) r.sent = false;
  }
  // Calls `send` with each checksum that was not sent yet. False: not all could be sent.
  template <class Send>
  bool send_all(Send&& send) {
    return std::ranges::all_of(runs_, [&](QueuedChecksum& r) { return r.sent = r.sent || send(r.sum); });
  }

 private:
  struct QueuedChecksum {
    GrantChecksum sum;
    bool sent = false;
  };
  std::uint32_t current_ = 0;
  std::vector<QueuedChecksum> runs_;
};

}  // namespace trellis::ccl::libfabric
