// The memory that an operand touches, as a box: for whoever asks which accesses meet.
#pragma once

#include <cstdint>

#include "sim/core/program/program.h"

namespace trellis::sim::core {

// Rows, and bytes of a row. In HBM rows are `stride` apart, and `first`, `last` span all of it.
struct Footprint {
  std::int64_t area = 0;  // one memory: SBUF or PSUM of a core, or a buffer in HBM
  int shift = 0;          // log2 of the bytes of a bucket there
  std::int64_t first = 0, last = 0;
  std::int64_t row = 0, rows = 0;
  std::int64_t stride = 0, column = 0, width = 0;

  std::int64_t first_bucket() const { return first >> shift; }
  std::int64_t last_bucket() const { return (last - 1) >> shift; }
};

Footprint footprint_of(const EngineProgram&, const View&);
bool overlap(const Footprint&, const Footprint&);
bool covers(const Footprint&, const Footprint&);

}  // namespace trellis::sim::core
