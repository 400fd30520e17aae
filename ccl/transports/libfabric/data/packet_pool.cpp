#include "ccl/transports/libfabric/data/packet_pool.h"

namespace trellis::ccl::libfabric {

PacketPool::PacketPool(Wire& wire, std::size_t packet_bytes, std::size_t most)
    : wire_(wire), packet_bytes_((packet_bytes + 63) / 64 * 64), most_(most) {}

PacketBuffer* PacketPool::take(WireOperation::What what) {
  if (free_.empty()) {
    if (slabs_.size() * slab_packets >= most_) return nullptr;
    Slab slab;
    slab.memory = std::make_unique_for_overwrite<std::byte[]>(slab_packets * packet_bytes_);
    if (wire_.limits().registers_local)
      slab.region = wire_.region({.data = slab.memory.get(), .bytes = slab_packets * packet_bytes_}, false);
    slab.buffers = std::make_unique<PacketBuffer[]>(slab_packets);
    for (std::size_t i = 0; i < slab_packets; ++i) {
      PacketBuffer& b = slab.buffers[i];
      b.pool = this;
      b.data = slab.memory.get() + i * packet_bytes_;
      b.descriptor = slab.region ? slab.region->descriptor() : nullptr;
      free_.push_back(&b);
    }
    slabs_.push_back(std::move(slab));
  }
  PacketBuffer* const b = free_.back();
  free_.pop_back();
  b->what = what;
  return b;
}

void PacketPool::leave_wire() {
  for (Slab& s : slabs_) s.region.reset();
}

}  // namespace trellis::ccl::libfabric
