#include "sim/core/arithmetic/psum_accumulation.h"

#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {

void put_product(const BoundInstruction& call, CoreMemory& memory, const float* product) {
  const View& out = call.out();
  const auto n = static_cast<std::size_t>(out.elements());
  const bool accumulates = call.number(Key::accumulate) != 0;
  if (accumulates && out.type == DType::f32 && contiguous(out)) {
    for (std::int64_t r = 0; r < out.rows; ++r, product += n) {
      auto* __restrict to = reinterpret_cast<float*>(memory.row(out, r));
      for (std::size_t i = 0; i < n; ++i) to[i] += product[i];
    }
    return;
  }
  InputRows before(memory, out);
  OutputRows sink(call, memory, out);
  for (std::int64_t r = 0; r < out.rows; ++r) {
    const float* row = product + static_cast<std::size_t>(r) * n;
    if (!accumulates) {
      sink.store(r, row);
      continue;
    }
    arithmetic(AluOp::add, {before.row(r)}, {row}, sink.row(), n);
    sink.store(r);
  }
}

SystolicArrayTile array_tile(const BoundInstruction& call, int rows, int columns) {
  return {static_cast<int>(call.number(Key::tile_row)), static_cast<int>(call.number(Key::tile_column)),
          static_cast<int>(call.number(Key::tile_rows, rows)),
          static_cast<int>(call.number(Key::tile_columns, columns))};
}

double array_share(const BoundInstruction& call, const TensorSpec& t) {
  const SystolicArrayTile tile = array_tile(call, t.rows, t.columns);
  return static_cast<double>(tile.rows) / t.rows * tile.columns / t.columns;
}

}  // namespace trellis::sim::core
