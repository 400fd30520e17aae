#include "ccl/api/handles/user_allocations.h"

#include "device/noexcept_release.h"
#include "text/refuse.h"

namespace trellis::ccl::api {

void* UserAllocations::allocate(device::Device& device, std::string_view function, std::size_t bytes) {
  void* const memory = device.allocate(bytes, function);
  try {
    const std::lock_guard lock(mutex_);
    function_of_.insert_or_assign(memory, std::string(function));
  } catch (...) {
    device::give_back(device, memory);
    throw;
  }
  return memory;
}

// Only the thread that removes the entry frees the memory, even if two threads free it at once.
void UserAllocations::release(device::Device& device, std::string_view function, void* memory) {
  if (memory == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    const auto found = function_of_.find(memory);
    if (found == function_of_.end() || found->second != function)
      text::refuse("{} was not allocated by {}, or has been freed", memory, function);
    function_of_.erase(found);
  }
  device.release(memory);
}

}  // namespace trellis::ccl::api
