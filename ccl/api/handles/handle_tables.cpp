#include "ccl/api/handles/handle_tables.h"

#include "ccl/process_device.h"
#include "device/fork_safe_singleton.h"

namespace trellis::ccl::api {
const std::shared_ptr<device::Device>& device() { return device_of_process(); }
UserAllocations& user_memory() {
  return device::of_this_process([] { return new UserAllocations; });
}
Handles<Comm>& comms() {
  return device::of_this_process([] { return new Handles<Comm>(0x7C01, "communicator"); });
}
Handles<device::Stream>& streams() {
  return device::of_this_process([] { return new Handles<device::Stream>(0x7C02, "stream"); });
}
Handles<device::Event>& events() {
  return device::of_this_process([] { return new Handles<device::Event>(0x7C03, "event"); });
}

StreamRef::StreamRef(trellis_stream handle) {
  if (handle != nullptr) stream_ = streams().use(handle).share();
}

}  // namespace trellis::ccl::api
