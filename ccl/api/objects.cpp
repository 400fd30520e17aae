#include "ccl/api/objects.h"

namespace trellis::ccl::api {

// They are left to the end of the process: what a program has not destroyed may still be at work.
const std::shared_ptr<device::Device>& device() {
  static const auto& shared = *new std::shared_ptr<device::Device>(device::open("host"));
  return shared;
}
Handles<Comm>& comms() {
  static auto& table = *new Handles<Comm>(0x7C01, "communicator");
  return table;
}
Handles<device::Stream>& streams() {
  static auto& table = *new Handles<device::Stream>(0x7C02, "stream");
  return table;
}
Handles<device::Event>& events() {
  static auto& table = *new Handles<device::Event>(0x7C03, "event");
  return table;
}

StreamUse::StreamUse(trellis_stream handle) {
  if (handle != nullptr) stream_ = streams().use(handle).share();
}

}  // namespace trellis::ccl::api
