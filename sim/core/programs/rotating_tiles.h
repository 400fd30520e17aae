// Tiles used in rotation (double buffering), so that one can be filled while another is in use.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "sim/core/program/program_builder.h"

namespace trellis::sim::core {

class RotatingTiles {
 public:
  RotatingTiles(ProgramBuilder& b, std::string_view name, DType type, std::int64_t rows, std::int64_t columns,
                int count, MemorySpace space = MemorySpace::sbuf) {
    for (int i = 0; i < count; ++i) {
      const std::string tile = fmt::format("{}{}", name, i);
      tiles_.push_back(space == MemorySpace::sbuf ? b.tile(tile, type, rows, columns)
                                                  : b.psum(tile, type, rows, columns));
    }
  }

  const TensorOperand& next() { return tiles_[turn_++ % tiles_.size()]; }

 private:
  std::vector<TensorOperand> tiles_;
  std::size_t turn_ = 0;
};

}  // namespace trellis::sim::core
