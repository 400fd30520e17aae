// Stores matrix products in PSUM, or adds them to what it holds if the attribute accumulate says so.
#pragma once

#include "sim/core/program/instruction_kind.h"
#include "sim/core/run/core_memory.h"

namespace trellis::sim::core {

// product: as many rows and elements as the first output, in row-major order.
void put_product(const BoundInstruction&, CoreMemory&, const float* product);

// The tile of Tensor's systolic array that an instruction uses: tile_rows x tile_cols, from tile_row and tile_col on;
// the whole array if these attributes are absent.
struct SystolicArrayTile {
  int row = 0, column = 0, rows = 0, columns = 0;
};
SystolicArrayTile array_tile(const BoundInstruction&, int rows, int columns);
// The fraction of the array that an instruction occupies. Its time is scaled by this, because tiles of the array run in
// parallel.
double array_share(const BoundInstruction&, const TensorSpec&);

}  // namespace trellis::sim::core
