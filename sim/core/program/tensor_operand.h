// Operands as kernels are written with them: a tensor, a tile, or a part of one.
#pragma once

#include "sim/core/program/program.h"

namespace trellis::sim::core {

// A view with functions for its parts. Rows are partitions on chip.
struct TensorOperand {
  View view;

  std::int64_t rows() const { return view.rows; }
  std::int64_t columns() const { return view.elements(); }
  DType type() const { return view.type; }

  // Each throws invalid_argument if out of range. column_range needs rows of one dimension.
  TensorOperand row_range(std::int64_t first, std::int64_t count) const;
  TensorOperand column_range(std::int64_t first, std::int64_t count) const;
  TensorOperand shaped(
      std::initializer_list<std::int64_t> counts) const;  // the same elements, each row in these dimensions
  TensorOperand spread_rows(std::int64_t rows) const;     // HBM: one row, read repeatedly
};

}  // namespace trellis::sim::core
