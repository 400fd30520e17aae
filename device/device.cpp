#include "device/device.h"

#include <fmt/format.h>

#include <stdexcept>

namespace trellis::device {

std::shared_ptr<Device> open_host();

std::shared_ptr<Device> open(std::string_view name) {
  if (name == "host") return open_host();
  throw std::invalid_argument(fmt::format("no device is called '{}'; known is host", name));
}

}  // namespace trellis::device
