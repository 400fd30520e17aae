// Gives devices that can reach host memory the caller's memory in place.
#pragma once

#include <fmt/format.h>

#include <stdexcept>

#include "device/memory.h"

namespace trellis::device {

class ZeroCopyMemory : public Attached {
 public:
  ZeroCopyMemory(void* data, std::size_t bytes) : data_(data), bytes_(bytes) {
    if (data == nullptr && bytes != 0)
      throw std::invalid_argument(fmt::format("attach: {} bytes at null; expected memory", bytes));
  }
  void* data() const override { return data_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  void* data_;
  std::size_t bytes_;
};

}  // namespace trellis::device
