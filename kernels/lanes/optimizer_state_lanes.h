// How an optimizer keeps parameters and its state, in vectors, as update_call.cpp does it one by one.
#pragma once

#include "kernels/lanes/bf16_load_store_lanes.h"
#include "kernels/lanes/optimizer_random_lanes.h"
#include "kernels/lanes/walk_lanes.h"
#include "kernels/optimizers/parameter.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

TRELLIS_INLINE F square_root(F f) {
#if defined(__AVX512F__)
  return (F)_mm512_maskz_sqrt_ps(0xFFFF, (__m512)f);  // without a mask GCC warns of its own header
#elif defined(__AVX2__)
  return (F)_mm256_sqrt_ps((__m256)f);
#elif defined(__SSE2__)
  return (F)_mm_sqrt_ps((__m128)f);
#else
  for (int i = 0; i < lanes; ++i) f[i] = __builtin_sqrtf(f[i]);
  return f;
#endif
}

// A copy of the pointers to the written operands. Otherwise the compiler must assume that stores change them.
struct WrittenOperands {
  void* at[5];
};
template <int count>
TRELLIS_INLINE WrittenOperands places(const KernelArguments& s) {
  WrittenOperands p{};
  for (int i = 0; i < count; ++i) p.at[i] = s.writes[i];
  return p;
}

constexpr int values_place(WeightStorage k) { return k == WeightStorage::f32_copy ? 1 : 0; }
constexpr int state_place(WeightStorage k) {
  return k == WeightStorage::f32_copy || k == WeightStorage::bf16_kahan ? 2 : 1;
}

template <WeightStorage keep, class Which>
TRELLIS_INLINE F read_kept(const void* values, const void* rest, std::ptrdiff_t at, Which which) {
  if constexpr (keep <= WeightStorage::f32_copy) return read<f32_format>(values, at, which);
  const F value = read<bf16_format>(values, at, which);
  if constexpr (keep == WeightStorage::bf16_kahan) return value + read<bf16_format>(rest, at, which);
  return value;
}

template <WeightStorage keep, class Which>
TRELLIS_INLINE void write_kept(const WrittenOperands& p, std::ptrdiff_t at, F value, U random, Which which) {
  void* const values = p.at[values_place(keep)];
  if constexpr (keep <= WeightStorage::f32_copy) {
    write_result<f32_format, Rounding::nearest, false>(values, at, value, U{}, which);
    if constexpr (keep == WeightStorage::f32_copy)
      write_result<bf16_format, Rounding::nearest, false>(p.at[0], at, value, U{}, which);
  } else if constexpr (keep == WeightStorage::bf16_stochastic) {
    write_result<bf16_format, Rounding::stochastic, false>(values, at, value, random, which);
  } else {
    const U code = narrowed<bf16_format, Rounding::nearest, NanPolicy::canonical>(value, U{});
    put<false>(values, at, side_by_side<H>(code), which);
    if constexpr (keep == WeightStorage::bf16_kahan) {
      const F left = select((code & 0x7F80) == 0x7F80, F{}, value - widened<bf16_format>(code));  // always finite
      const U u = as_u(left);
      put<false>(p.at[1], at, side_by_side<H>((u + (((u >> 16) & 1) + 0x7FFF)) >> 16), which);
    }
  }
}

template <DType type, class Which>
TRELLIS_INLINE void write_state(void* array, std::ptrdiff_t at, F value, U random, Which which) {
  constexpr Rounding rounding = type == DType::bf16 ? Rounding::stochastic : Rounding::nearest;
  write_result<format_of(type), rounding, false>(array, at, value, random, which);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
