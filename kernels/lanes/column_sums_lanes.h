// Sums down columns in vectors, in the one order that rows.h defines.
#pragma once

#include "kernels/lanes/row_reduction_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// How many vectors of columns are summed at a time, so that a visit to a row reads more than one line of memory.
constexpr int columns_together = 4;

template <int count, int vectors, class Which, class Term>
TRELLIS_INLINE void down(const RowKernelArguments& s, std::ptrdiff_t at, Which which, const Term& term) {
  F total[vectors][count] = {};
  for (std::size_t row = 0; row < s.rows;) {
    F sums[vectors][count] = {};
    for (const std::size_t end = s.rows - row < column_run ? s.rows : row + column_run; row < end; ++row)
      for (int v = 0; v < vectors; ++v) term(row, at + v * lanes, which, sums[v]);
    for (int v = 0; v < vectors; ++v)
      for (int k = 0; k < count; ++k) total[v][k] += sums[v][k];
  }
  for (int v = 0; v < vectors; ++v)
    for (int k = 0; k < count; ++k) set<DType::f32>(s.writes[k], at + v * lanes, total[v][k], which);
}

// term(row, at, which, sums) adds a row's terms to `count` sums; they land in writes[0..count).
template <int count, class Term>
TRELLIS_INLINE void down_columns(const RowKernelArguments& s, const Term& term) {
  const auto end = static_cast<std::ptrdiff_t>(s.to);
  auto at = static_cast<std::ptrdiff_t>(s.from);
  constexpr std::ptrdiff_t together = columns_together * lanes;
  for (; at + together <= end; at += together) down<count, columns_together>(s, at, AllLanes{}, term);
  for (; at + lanes <= end; at += lanes) down<count, 1>(s, at, AllLanes{}, term);
  if (at < end) down<count, 1>(s, at, LaneRange{0, static_cast<int>(end - at)}, term);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
