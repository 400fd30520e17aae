#include "device/libnrt/handle_table.h"

namespace trellis::device::nrt {

// A number that can't be an address of the program, so that a handle used as a pointer fails at once.
std::uintptr_t next_handle() {
  static std::atomic<std::uintptr_t> count = 0;
  return (std::uintptr_t{0x4E52} << 48) | ((count.fetch_add(1, std::memory_order_relaxed) + 1) << 4);
}

}  // namespace trellis::device::nrt
