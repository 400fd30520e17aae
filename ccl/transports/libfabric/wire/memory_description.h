// Memory as its owner describes it to a fabric: what it is, and how it may be registered.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trellis::ccl::libfabric {

struct MemoryDescription {
  enum class Of : std::uint8_t { host, neuron };
  void* data = nullptr;
  std::size_t bytes = 0;
  Of of = Of::host;
  int device = 0;                 // the number of the Neuron device
  int dmabuf = -1;                // a file descriptor by which its owner exports it; -1: none
  std::size_t dmabuf_offset = 0;  // of `data` in that file
};

}  // namespace trellis::ccl::libfabric
