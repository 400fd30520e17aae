// Registered memory: the caller's own memory, which peers can read directly until this object is destroyed.
#pragma once

#include <cstddef>

namespace trellis::ccl {

class Exposed {
 public:
  virtual ~Exposed() = default;
  virtual std::size_t readable_bytes() const = 0;  // the rest is sent as unregistered memory is
};

}  // namespace trellis::ccl
