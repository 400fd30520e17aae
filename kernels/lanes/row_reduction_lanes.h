// Passes along a row in vectors, and sums in the one order that rows.h defines.
#pragma once

#include "kernels/lanes/float_load_store_lanes.h"
#include "kernels/layers/rows.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

constexpr int row_vectors = static_cast<int>(row_sums) / lanes;

// Calls step(at, which, vector) for each vector of the first n elements; `vector` says to which vector of sums it is
// added.
template <class Step>
TRELLIS_INLINE void over_row(std::size_t n, const Step& step) {
  constexpr auto whole = static_cast<std::ptrdiff_t>(row_sums);
  const auto end = static_cast<std::ptrdiff_t>(n);
  std::ptrdiff_t at = 0;
  for (; at + whole <= end; at += whole)
#pragma GCC unroll 8
    for (int v = 0; v < row_vectors; ++v) step(at + v * lanes, AllLanes{}, v);
  for (int v = 0; v < row_vectors && at < end; ++v, at += lanes)
    step(at, LaneRange{0, static_cast<int>(end - at < lanes ? end - at : lanes)}, v);
}

// Puts `otherwise` in the lanes that take no part.
TRELLIS_INLINE F taking_part(F f, AllLanes, float) { return f; }
TRELLIS_INLINE F taking_part(F f, LaneRange p, float otherwise) {
  return select((I)lane_numbers() < p.to, f, f_all(otherwise));
}

struct SumOperator {
  static constexpr float start = 0;
  template <class V>
  TRELLIS_INLINE static V joined(V a, V b) {
    return a + b;
  }
};

struct MaxOperator {
  static constexpr float start = -__builtin_inff();
  TRELLIS_INLINE static F joined(F a, F b) { return select(b > a, b, a); }
  TRELLIS_INLINE static float joined(float a, float b) { return b > a ? b : a; }
};

template <class Join>
class RowReduction {
 public:
  TRELLIS_INLINE RowReduction() {
    for (F& p : parts_) p = f_all(Join::start);
  }
  template <class Which>
  TRELLIS_INLINE void add(int vector, F f, Which which) {
    parts_[vector] = Join::joined(parts_[vector], taking_part(f, which, Join::start));
  }
  TRELLIS_INLINE float total() const {
    float all[row_sums];
    std::memcpy(all, parts_, sizeof all);
    for (std::size_t width = row_sums / 2; width > 0; width /= 2)
      for (std::size_t j = 0; j < width; ++j) all[j] = Join::joined(all[j], all[j + width]);
    return all[0];
  }

 private:
  F parts_[row_vectors];
};
using RowSum = RowReduction<SumOperator>;
using RowLargest = RowReduction<MaxOperator>;

// Access to a row of a table, and to operands that have one element a row or one a column.
template <DType type>
TRELLIS_INLINE const char* row_at(const void* table, std::size_t row, std::size_t columns) {
  return static_cast<const char*>(table) + row * columns * size_of(type);
}
template <DType type>
TRELLIS_INLINE char* row_at(void* table, std::size_t row, std::size_t columns) {
  return static_cast<char*>(table) + row * columns * size_of(type);
}
TRELLIS_INLINE float one_at(const void* array, std::size_t row) {
  float f;
  std::memcpy(&f, static_cast<const char*>(array) + row * sizeof f, sizeof f);
  return f;
}
TRELLIS_INLINE void put_one(void* array, std::size_t row, float f) {
  const std::uint32_t nan = canonical_nan;
  if (f != f) std::memcpy(&f, &nan, sizeof f);
  std::memcpy(static_cast<char*>(array) + row * sizeof f, &f, sizeof f);
}

template <DType type, class Which>
TRELLIS_INLINE F get(const void* row, std::ptrdiff_t at, Which which) {
  return read<format_of(type)>(row, at, which);
}
template <DType type, class Which>
TRELLIS_INLINE void set(void* row, std::ptrdiff_t at, F f, Which which) {
  write<format_of(type), Rounding::nearest, false>(row, at, canonical(f), U{}, which);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
