// The handle tables of this process, and the device that all its communicators share.
#pragma once

#include "ccl/api/c/communicator.h"
#include "ccl/api/c/device.h"
#include "ccl/api/handles/comm.h"
#include "ccl/api/handles/handles.h"
#include "ccl/api/handles/user_allocations.h"
#include "device/device.h"

namespace trellis::ccl::api {

const std::shared_ptr<device::Device>& device();
UserAllocations& user_memory();
Handles<Comm>& comms();
Handles<device::Stream>& streams();
Handles<device::Event>& events();

// Looks up a stream by its handle and keeps it alive; null for NULL.
class StreamRef {
 public:
  explicit StreamRef(trellis_stream);
  device::Stream* get() const { return stream_.get(); }
  std::shared_ptr<device::Stream> share() const { return stream_; }

 private:
  std::shared_ptr<device::Stream> stream_;
};

}  // namespace trellis::ccl::api
