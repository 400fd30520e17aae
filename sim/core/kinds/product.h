// What becomes of a product: PSUM is written, or added to.
#pragma once

#include "sim/core/kind.h"
#include "sim/core/memory.h"

namespace trellis::sim::core {

// product: as many rows and elements as the first output, row after row.
void put_product(const Call&, Memory&, const float* product);

// Which part of the array works: tile_rows x tile_cols of it, at tile_row and tile_col; all where they are absent.
struct ArrayTile {
  int row = 0, column = 0, rows = 0, columns = 0;
};
ArrayTile array_tile(const Call&, int rows, int columns);
// How much of the array's time an instruction takes: parts of the array work side by side, so half of it takes half.
double array_share(const Call&, const TensorSpec&);

}  // namespace trellis::sim::core
