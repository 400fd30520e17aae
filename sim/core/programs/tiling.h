// Tiling of HBM data, shared by programs: a long row cut into tiles, and tables cut into blocks of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/core/program/program_builder.h"

namespace trellis::sim::core {

// A tile's worth of a row, from element `first` on, in row-major order.
struct RowTile {
  std::int64_t first = 0, rows = 0, columns = 0;
};

// Cuts a row of n elements into tiles of at most 128 rows with at most `columns` elements.
inline std::vector<RowTile> pieces_of(std::int64_t n, std::int64_t columns) {
  std::vector<RowTile> pieces;
  std::int64_t at = 0;
  const auto cut = [&](std::int64_t rows, std::int64_t wide) {
    pieces.push_back({at, rows, wide});
    at += rows * wide;
  };
  while (n - at >= 128 * columns) cut(128, columns);
  if (n - at >= 128) cut(128, (n - at) / 128);
  if (n > at) cut(1, n - at);
  return pieces;
}

inline TensorOperand part_of(TensorOperand row, const RowTile& p) {
  row.view.offset += p.first * static_cast<std::int64_t>(kernels::size_of(row.view.type));
  row.view.rows = static_cast<std::int32_t>(p.rows);
  row.view.row_stride = p.columns * static_cast<std::int64_t>(kernels::size_of(row.view.type));
  row.view.dim[0] = {static_cast<std::int32_t>(p.columns), 1};
  return row;
}

// The corner of a tile that a RowTile fills.
inline TensorOperand part_of_tile(const TensorOperand& tile, const RowTile& p) {
  return tile.row_range(0, p.rows).column_range(0, p.columns);
}

// Calls visit(first, count) for each block of at most `most` out of n.
template <class Visit>
void each_block(std::int64_t n, std::int64_t most, Visit visit) {
  for (std::int64_t first = 0; first < n; first += most) visit(first, std::min(most, n - first));
}

// How many sets of tiles, each of `bytes` a partition, fit in SBUF beside `taken` bytes: at most `most`. Returns 1 even
// if no set fits, as the builder then refuses its tiles.
inline int sets_that_fit(const ChipSpec& chip, std::int64_t bytes, std::int64_t taken, int most) {
  const std::int64_t sets = (static_cast<std::int64_t>(chip.memory.sbuf_bytes) - taken) / bytes;
  return static_cast<int>(std::clamp<std::int64_t>(sets, 1, most));
}

inline TensorOperand block_of(const TensorOperand& table, std::int64_t row, std::int64_t rows, std::int64_t column,
                              std::int64_t columns) {
  return table.row_range(row, rows).column_range(column, columns);
}

}  // namespace trellis::sim::core
