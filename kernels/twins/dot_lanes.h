// dot and squares in vectors.
#pragma once

#include <array>

#include "kernels/lanes/bf16_pair_lanes.h"
#include "kernels/lanes/f64_sums_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <DType type, bool square>
void dot(const KernelArguments& s) {
  constexpr Format format = format_of(type);
  constexpr auto size = static_cast<std::ptrdiff_t>(size_of(type));
  constexpr int row = static_cast<int>(dot_sums) * size;
  const void* const x = s.reads[0];
  const void* const y = square ? x : s.reads[1];
  sum_parts<1>(
      s, [=](std::ptrdiff_t at, auto which, int vector, F64PartialSums* sums) __attribute__((always_inline)) {
        if (vector == 0) {
          ask_ahead<row>(static_cast<const char*>(x) + at * size);
          if constexpr (!square) ask_ahead<row>(static_cast<const char*>(y) + at * size);
        }
        const F64VectorPair a = wide(read<format>(x, at, which));
        sums[0].add(vector, a, square ? a : wide(read<format>(y, at, which)));
      });
}

// Writes the sums of squares of one part to `all`, in dot.h's order; returns false if an infinity or a NaN is among the
// elements. A 64-bit lane holds four codes: one shift and one mask make of one of them an f64 without its sign that is
// 2^896 times too small, where a conversion would take two instructions more.
TRELLIS_INLINE bool squares_of_bf16(const char* array, double* all) {
  constexpr std::uint64_t mask = 0x0FFF'E000'0000'0000;
  constexpr double scale = 0x1p896;
  constexpr int row = static_cast<int>(dot_sums), vectors = row / pair_lanes;
  const D up = scale - D{};
  D sums[vectors][4] = {};
  Q greatest = {};
  for (std::ptrdiff_t at = 0; at < static_cast<std::ptrdiff_t>(part_elements); at += row) {
    ask_ahead<row * 2>(array + at * 2);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const W codes = load<W>(array + (at + v * pair_lanes) * 2, 0, AllLanes{});
      greatest = larger_halves(greatest, (Q)codes + (Q)codes);
      const W shifted[] = {codes << 45, codes << 29, codes << 13, codes >> 3};
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const D size = (D)(shifted[k] & mask) * up;
        sums[v][k] = plus_product(sums[v][k], size, size);
      }
    }
  }
  for (int v = 0; v < vectors; ++v)
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < lanes / 2; ++i) all[v * pair_lanes + i * 4 + k] = sums[v][k][i];
  for (int i = 0; i < pair_lanes; ++i)
    if (greatest[i] >= 2 * 0x7F80) return false;
  return true;
}

void squares_bf16(const KernelArguments& s) {
  const auto sum_one_part = [&](std::size_t part) {
    const std::size_t at = part * part_elements;
    const void* const read = static_cast<const char*>(s.reads[0]) + at * 2;
    void* const write = static_cast<char*>(s.writes[0]) + part * 8;
    KernelArguments one = s;
    one.n = s.n - at < part_elements ? s.n - at : part_elements;
    one.reads = &read;
    one.writes = &write;
    dot<DType::bf16, true>(one);
  };
  for (std::size_t part = 0; part < s.n / part_elements; ++part) {
    const char* const array = static_cast<const char*>(s.reads[0]) + part * part_elements * 2;
    double all[dot_sums];
    if (!squares_of_bf16(array, all)) {
      sum_one_part(part);
      continue;
    }
    const double total = total_of(all);
    std::memcpy(static_cast<char*>(s.writes[0]) + part * 8, &total, sizeof total);
  }
  if (s.n % part_elements != 0) sum_one_part(s.n / part_elements);
}

constexpr std::array<Twin, 6> dots = {{
    {KernelName::of("dot", "f32"), dot<DType::f32, false>},
    {KernelName::of("dot", "bf16"), dot<DType::bf16, false>},
    {KernelName::of("dot", "f16"), dot<DType::f16, false>},
    {KernelName::of("squares", "f32"), dot<DType::f32, true>},
    {KernelName::of("squares", "bf16"), squares_bf16},
    {KernelName::of("squares", "f16"), dot<DType::f16, true>},
}};

const Registered registered(this_isa, dots);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
