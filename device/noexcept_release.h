// Releases device memory in a destructor.
#pragma once

#include "device/device.h"

namespace trellis::device {

// A failure can't be reported to anybody; what cannot be released stays in the device's account.
inline void give_back(Device& device, void* memory) noexcept {
  try {
    device.release(memory);
  } catch (...) {
  }
}

}  // namespace trellis::device
