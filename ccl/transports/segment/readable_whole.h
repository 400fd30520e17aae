// Registered memory that needs no preparation: all of it can be read.
#pragma once

#include "ccl/exposed.h"

namespace trellis::ccl {

class ReadableWhole : public Exposed {
 public:
  explicit ReadableWhole(std::size_t bytes) : bytes_(bytes) {}
  std::size_t readable_bytes() const override { return bytes_; }

 private:
  std::size_t bytes_;
};

}  // namespace trellis::ccl
