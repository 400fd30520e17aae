// reduce of the formats whose conversions cost more than the arithmetic: each source is widened to f32 piece by piece,
// the pieces are joined, and the result is narrowed.
#pragma once

#include <array>

#include "kernels/lanes/reduce_lanes.h"
#include "kernels/lanes/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

constexpr std::size_t piece = 512;
struct WidenedPiece {
  alignas(64) float values[piece];
};

template <DType type>
[[gnu::noinline]] void widen_piece(const void* array, std::size_t at, std::size_t n, WidenedPiece& to) {
  for (std::size_t i = 0; i < n; i += lanes) {
    const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(at + i);
    const F value = i + lanes <= n ? read<format_of(type)>(array, from, AllLanes{})
                                   : read<format_of(type)>(array, from, LaneRange{0, static_cast<int>(n - i)});
    put<false>(to.values, static_cast<std::ptrdiff_t>(i), value, AllLanes{});
  }
}

template <Reduction op>
[[gnu::noinline]] void join_piece(WidenedPiece& sum, const WidenedPiece& next, float factor) {
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(piece); i += lanes) {
    F value = load<F>(next.values, i, AllLanes{});
    if constexpr (op == Reduction::scaled_sum) value = value * factor;
    put<false>(sum.values, i, canonical(joined<op>(load<F>(sum.values, i, AllLanes{}), value)), AllLanes{});
  }
}

TRELLIS_INLINE void scale_piece(WidenedPiece& sum, float factor, float divisor) {
  for (float& value : sum.values) value = value * factor / divisor;
}

template <DType type, Rounding rounding>
[[gnu::noinline]] void narrow_piece(const WidenedPiece& sum, const KernelArguments& s, std::size_t at, std::size_t n) {
  const void* const src = sum.values;
  void* const dst = static_cast<char*>(s.writes[0]) + at * size_of(type);
  KernelArguments part = s;
  part.n = n, part.first += at, part.streaming = false;
  walk<2, rounding == Rounding::stochastic>(part, size_of(type), [=](auto) {
    return [=](std::ptrdiff_t i, auto which, U bits) __attribute__((always_inline)) {
      write_result<format_of(type), rounding, false>(dst, i, read<f32_format>(src, i, which), bits, which);
    };
  });
}

template <DType type, Reduction op, Rounding rounding>
void reduce_pieces(const KernelArguments& s) {
  const auto factor = static_cast<float>(static_cast<const ReduceSettings*>(s.settings)->factor);
  WidenedPiece sum = {}, next = {};
  for (std::size_t at = 0; at < s.n; at += piece) {
    const std::size_t n = s.n - at < piece ? s.n - at : piece;
    widen_piece<type>(s.reads[0], at, n, sum);
    if constexpr (op == Reduction::scaled_sum) scale_piece(sum, factor, 1);
    for (int k = 1; k < s.sources; ++k) {
      widen_piece<type>(s.reads[k], at, n, next);
      join_piece<op>(sum, next, factor);
    }
    if constexpr (op == Reduction::avg) scale_piece(sum, 1, static_cast<float>(s.sources));
    narrow_piece<type, rounding>(sum, s, at, n);
  }
}

template <std::size_t i>
constexpr Twin twin() {
  constexpr DType types[] = {DType::tf32, DType::f8e3m4, DType::f8e4m3, DType::f8e4m3fn, DType::f8e5m2};
  constexpr DType type = types[i / 2 / reduction_count];
  constexpr Rounding rounding = i / reduction_count % 2 == 0 ? Rounding::nearest : Rounding::stochastic;
  return {KernelName::of("reduce", name(reduction(i)), name(type), name(rounding)),
          reduce_pieces<type, reduction(i), rounding>};
}

constexpr auto small = []<std::size_t... i>(std::index_sequence<i...>) { return std::array{twin<i>()...}; }
(std::make_index_sequence<5 * 2 * reduction_count>{});

const Registered registered(this_isa, small);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
