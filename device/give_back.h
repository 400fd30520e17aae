// Memory that a destructor gives back.
#pragma once

#include "device/device.h"

namespace trellis::device {

// Nobody is left to report a failure to; what cannot be released stays in the device's account.
inline void give_back(Device& device, void* memory) noexcept {
  try {
    device.release(memory);
  } catch (...) {
  }
}

}  // namespace trellis::device
