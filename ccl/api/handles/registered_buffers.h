// Memory that the program has registered with one communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "ccl/exposed.h"

namespace trellis::ccl::api {

class RegisteredBuffers {
 public:
  void* add(std::size_t bytes, std::unique_ptr<Exposed>);  // returns its handle
  void remove(const void* handle);                         // throws invalid_argument when there is none

  struct Sum {
    std::size_t bytes = 0, readable = 0;
  };
  Sum sum() const;

 private:
  struct One {
    std::size_t bytes;
    std::unique_ptr<Exposed> exposed;
  };
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, One> all_;
  std::uintptr_t next_ = 1;
};

}  // namespace trellis::ccl::api
