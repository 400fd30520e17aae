// Sums in f64 over vectors, in the order that dot.h defines.
#pragma once

#include "kernels/dispatch/parallel.h"
#include "kernels/lanes/float_load_store_lanes.h"
#include "kernels/reduce/dot.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

typedef double D __attribute__((vector_size(4 * lanes)));        // lanes / 2 elements
typedef float HalfF __attribute__((vector_size(2 * lanes)));     // lanes / 2 elements
constexpr int sum_vectors = static_cast<int>(dot_sums) / lanes;  // in a row: 32 elements, one for each sum

struct F64VectorPair {
  D low, high;
};

// GCC 12 makes several instructions of __builtin_convertvector here.
TRELLIS_INLINE D widened_to_f64(HalfF f) {
#if defined(__AVX512F__)
  return (D)_mm512_maskz_cvtps_pd(0xFF, (__m256)f);
#elif defined(__AVX2__)
  return (D)_mm256_cvtps_pd((__m128)f);
#else
  return __builtin_convertvector(f, D);
#endif
}
template <int... i>
TRELLIS_INLINE F64VectorPair halves(F f, std::integer_sequence<int, i...>) {
  return {widened_to_f64(__builtin_shufflevector(f, f, i...)),
          widened_to_f64(__builtin_shufflevector(f, f, (i + lanes / 2)...))};
}
TRELLIS_INLINE F64VectorPair wide(F f) { return halves(f, std::make_integer_sequence<int, lanes / 2>{}); }

// Puts zeros in the lanes that take no part.
TRELLIS_INLINE F only(F f, AllLanes) { return f; }
TRELLIS_INLINE F only(F f, LaneRange p) {
  for (int i = 0; i < lanes; ++i)
    if (i < p.from || i >= p.to) f[i] = 0;
  return f;
}

// A product of two f32 is exact in f64, so a fused multiply-add and separate roundings give the same.
TRELLIS_INLINE D plus_product(D sum, D a, D b) {
#if defined(__AVX512F__)
  return (D)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum);
#elif defined(__AVX2__)
  return (D)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)sum);
#else
  return sum + a * b;
#endif
}

TRELLIS_INLINE double total_of(double* all) {
  for (std::size_t width = dot_sums / 2; width > 0; width /= 2)
    for (std::size_t j = 0; j < width; ++j) all[j] += all[j + width];
  return all[0] != all[0] ? __builtin_nan("") : all[0];
}

// The 32 sums of one part, and their total.
class F64PartialSums {
 public:
  TRELLIS_INLINE void add(int vector, F64VectorPair a, F64VectorPair b) {
    sums_[vector].low = plus_product(sums_[vector].low, a.low, b.low);
    sums_[vector].high = plus_product(sums_[vector].high, a.high, b.high);
  }
  TRELLIS_INLINE double total() const {
    double all[dot_sums];
    std::memcpy(all, sums_, sizeof all);
    return total_of(all);
  }

 private:
  F64VectorPair sums_[sum_vectors] = {};
};

// terms(at, which, vector, sums) adds what the elements of vector number `vector` of a row give; lanes that take no
// part must add zeros. Writes one f64 a part for each of `count` operands.
template <int count, class Terms>
TRELLIS_INLINE void sum_parts(const KernelArguments& s, const Terms& terms) {
  constexpr auto row = static_cast<std::ptrdiff_t>(dot_sums), part = static_cast<std::ptrdiff_t>(part_elements);
  const auto n = static_cast<std::ptrdiff_t>(s.n);
  for (std::ptrdiff_t begin = 0; begin < n; begin += part) {
    const std::ptrdiff_t end = n - begin < part ? n : begin + part;
    F64PartialSums sums[count];
    std::ptrdiff_t at = begin;
    for (; at + row <= end; at += row)
#pragma GCC unroll 8
      for (int v = 0; v < sum_vectors; ++v) terms(at + v * lanes, AllLanes{}, v, sums);
    for (int v = 0; v < sum_vectors && at < end; ++v, at += lanes)
      terms(at, LaneRange{0, static_cast<int>(end - at < lanes ? end - at : lanes)}, v, sums);
    for (int k = 0; k < count; ++k) {
      const double total = sums[k].total();
      std::memcpy(static_cast<char*>(s.writes[k]) + begin / part * 8, &total, sizeof total);
    }
  }
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
