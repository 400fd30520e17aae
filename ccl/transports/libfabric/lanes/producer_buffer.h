// The bytes of a message that a producer makes, in memory of the lane's own. A producer makes each piece once, so one
// that could not be sent is found here again.
#pragma once

#include <memory>
#include <vector>

#include "ccl/transports/libfabric/data/registration_cache.h"
#include "ccl/transports/message.h"

namespace trellis::ccl::libfabric {

class ProducerBuffer {
 public:
  void begin() { made_ = 0; }  // begins another message
  const std::byte* whole(const Sending&);
  // The piece from `offset` on, in one of `slots` slots of `slot_bytes`, which are used in turn. The slots are
  // registered with `registrations`; null: they need not be.
  const std::byte* piece(const Sending&, std::size_t offset, std::size_t bytes, std::size_t slot_bytes,
                         std::size_t slots, RegistrationCache*);
  const RegistrationCache::Use& registered() const { return registered_; }  // the slots
  void drop_rail(int rail) {
    if (registered_) registered_->drop_rail(rail);
  }
  void drop();

 private:
  std::size_t made_ = 0;  // bytes
  std::vector<std::byte> small_;
  std::size_t slot_bytes_ = 0, slots_ = 0;
  std::unique_ptr<std::byte[]> memory_;
  RegistrationCache::Use registered_;
};

}  // namespace trellis::ccl::libfabric
