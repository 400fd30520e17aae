// Records the memory that the program has allocated, and by which function: only that function's counterpart frees it.
// Memory that the library allocates for itself is not recorded, so the program cannot free it.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "device/device.h"

namespace trellis::ccl::api {

class UserAllocations {
 public:
  void* allocate(device::Device&, std::string_view function, std::size_t bytes);
  // Throws invalid_argument when the function did not allocate it, or it has been freed.
  void release(device::Device&, std::string_view function, void*);

 private:
  std::mutex mutex_;
  std::map<void*, std::string> function_of_;
};

}  // namespace trellis::ccl::api
