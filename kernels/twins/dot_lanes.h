// dot and squares in vectors.
#pragma once

#include <array>

#include "kernels/sums_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <DType type, bool square>
void dot(const Stretch& s) {
  constexpr Format format = format_of(type);
  const void* const x = s.reads[0];
  const void* const y = square ? x : s.reads[1];
  sum_parts<1>(
      s, [=](std::ptrdiff_t at, auto which, int vector, Sums* sums) __attribute__((always_inline)) {
        const Wide a = wide(read<format>(x, at, which));
        sums[0].add(vector, a, square ? a : wide(read<format>(y, at, which)));
      });
}

constexpr std::array<Twin, 6> dots = {{
    {Name::of("dot", "f32"), dot<DType::f32, false>},
    {Name::of("dot", "bf16"), dot<DType::bf16, false>},
    {Name::of("dot", "f16"), dot<DType::f16, false>},
    {Name::of("squares", "f32"), dot<DType::f32, true>},
    {Name::of("squares", "bf16"), dot<DType::bf16, true>},
    {Name::of("squares", "f16"), dot<DType::f16, true>},
}};

const Registered registered(this_isa, dots);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
