// Buffers for packets, in registered slabs.
#pragma once

#include <memory>
#include <vector>

#include "ccl/errors.h"
#include "ccl/store.h"
#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

class PacketPool;

struct PacketBuffer : WireOperation {
  PacketPool* pool = nullptr;
  std::byte* data = nullptr;
  void* descriptor = nullptr;
  int rail = 0;  // over which it was received
  // Only for a packet that is sent:
  fi_addr_t to = FI_ADDR_UNSPEC;
  Rank peer = -1;
  std::size_t bytes = 0;
  Deadline again = {};         // when it is sent again after a failure
  Clock::duration pause = {};  // how long it waits for that; grows with each failure
};

class PacketPool {
 public:
  PacketPool(Wire&, std::size_t packet_bytes, std::size_t most);
  PacketBuffer* take(WireOperation::What);  // null: all are in use
  void give(PacketBuffer* b) { free_.push_back(b); }
  // Called when the wire is closed. Buffers in use keep their contents; no buffer is handed out any more.
  void leave_wire();
  std::size_t in_use() const { return slabs_.size() * slab_packets - free_.size(); }
  std::size_t packet_bytes() const { return packet_bytes_; }
  std::size_t memory_bytes() const { return slabs_.size() * slab_packets * packet_bytes_; }

 private:
  static constexpr std::size_t slab_packets = 4;
  struct Slab {
    std::unique_ptr<std::byte[]> memory;
    std::unique_ptr<MemoryRegion> region;
    std::unique_ptr<PacketBuffer[]> buffers;
  };
  Wire& wire_;
  const std::size_t packet_bytes_, most_;
  std::vector<Slab> slabs_;
  std::vector<PacketBuffer*> free_;
};

}  // namespace trellis::ccl::libfabric
