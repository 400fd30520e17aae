// Memory of the caller's own that peers can read where it lies, until this goes.
#pragma once

#include <cstddef>

namespace trellis::ccl {

class Exposed {
 public:
  virtual ~Exposed() = default;
  virtual std::size_t readable_bytes() const = 0;  // the rest is sent as any other memory is
};

}  // namespace trellis::ccl
