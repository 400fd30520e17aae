#include "ccl/transports/libfabric/lanes/producer_buffer.h"

namespace trellis::ccl::libfabric {

const std::byte* ProducerBuffer::whole(const Sending& s) {
  if (made_ == 0) {
    small_.resize(s.bytes);
    s.producer->make(s.producer->context, s.message, 0, small_.data(), s.bytes);
    made_ = s.bytes;
  }
  return small_.data();
}

const std::byte* ProducerBuffer::piece(const Sending& s, std::size_t offset, std::size_t bytes, std::size_t slot_bytes,
                                       std::size_t slots, RegistrationCache* registrations) {
  if (!memory_ || slot_bytes_ < slot_bytes || slots_ < slots) {
    drop();
    slot_bytes_ = slot_bytes;
    slots_ = slots;
    memory_ = std::make_unique_for_overwrite<std::byte[]>(slots * slot_bytes);
    if (registrations != nullptr) registered_ = registrations->alone(memory_.get(), slots * slot_bytes, false);
  }
  std::byte* const slot = memory_.get() + offset / slot_bytes % slots * slot_bytes_;
  if (made_ <= offset) {
    s.producer->make(s.producer->context, s.message, offset, slot, bytes);
    made_ = offset + bytes;
  }
  return slot;
}

void ProducerBuffer::drop() {
  registered_.reset();
  memory_.reset();
}

}  // namespace trellis::ccl::libfabric
