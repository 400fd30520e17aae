// reduce of integers: plain loops over a piece that fits the first cache, which the compiler turns into vectors.
#pragma once

#include <array>

#include "kernels/lanes.h"
#include "kernels/reduce.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <class T, Reduction op>
TRELLIS_INLINE T joined_whole(T a, T b) {
  if constexpr (op == Reduction::min) return b < a ? b : a;
  if constexpr (op == Reduction::max) return b > a ? b : a;
  using Wrap = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
  if constexpr (op == Reduction::prod) return static_cast<T>(static_cast<Wrap>(a) * static_cast<Wrap>(b));
  return static_cast<T>(static_cast<Wrap>(a) + static_cast<Wrap>(b));
}

// Writes a piece, past the caches where that is wanted and the address allows it.
template <class T>
TRELLIS_INLINE void put_piece(const Stretch& s, std::size_t at, const T* piece, std::size_t n) {
  char* const to = static_cast<char*>(s.writes[0]) + at * sizeof(T);
  std::size_t done = 0;
  if (s.streaming && reinterpret_cast<std::uintptr_t>(to) % 64 == 0)
    for (; done + sizeof(U) <= n * sizeof(T); done += sizeof(U)) {
      U words;
      std::memcpy(&words, reinterpret_cast<const char*>(piece) + done, sizeof words);
      put<true>(to + done, 0, words, Full{});
    }
  std::memcpy(to + done, reinterpret_cast<const char*>(piece) + done, n * sizeof(T) - done);
}

template <class T, Reduction op>
void reduce_whole(const Stretch& s) {
  constexpr std::size_t most = 4096 / sizeof(T);
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  using Wrap = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
  typedef T Loose __attribute__((aligned(1), may_alias));  // at any address
  const auto factor =
      static_cast<Wrap>(static_cast<std::int64_t>(static_cast<const ReduceSettings*>(s.settings)->factor));
  const auto scaled = [factor](T value) __attribute__((always_inline)) {
    return op == Reduction::scaled_sum ? static_cast<T>(static_cast<Wrap>(value) * factor) : value;
  };
  alignas(64) T sum[most];
  for (std::size_t at = 0; at < s.n; at += most) {
    const std::size_t n = s.n - at < most ? s.n - at : most;
    const auto source = [&](int k) { return static_cast<const Loose*>(s.reads[k]) + at; };
    const Loose* const first = source(0);
    if (s.sources == 1) {
      for (std::size_t i = 0; i < n; ++i) sum[i] = scaled(first[i]);
    } else {
      const Loose* const second = source(1);
      for (std::size_t i = 0; i < n; ++i) sum[i] = joined_whole<T, op>(scaled(first[i]), scaled(second[i]));
    }
    for (int k = 2; k < s.sources; ++k) {
      const Loose* const next = source(k);
      for (std::size_t i = 0; i < n; ++i) sum[i] = joined_whole<T, op>(sum[i], scaled(next[i]));
    }
    if constexpr (op == Reduction::avg)
      for (std::size_t i = 0; i < n; ++i)
        sum[i] = static_cast<T>(static_cast<Wide>(sum[i]) / static_cast<Wide>(s.sources));
    put_piece(s, at, sum, n);
  }
  if (s.streaming) fence();
}

constexpr Reduction reduction(std::size_t i) { return static_cast<Reduction>(i % reduction_count); }

template <class T, std::size_t i>
constexpr Twin whole_twin(DType type) {
  return {Name::of("reduce", name(reduction(i)), name(type), "nearest"), reduce_whole<T, reduction(i)>};
}

template <class T, std::size_t... i>
constexpr auto whole_twins(DType type, std::index_sequence<i...>) {
  return std::array{whole_twin<T, i>(type)...};
}

constexpr std::make_index_sequence<reduction_count> each_reduction{};
constexpr auto i8s = whole_twins<std::int8_t>(DType::i8, each_reduction);
constexpr auto u8s = whole_twins<std::uint8_t>(DType::u8, each_reduction);
constexpr auto i16s = whole_twins<std::int16_t>(DType::i16, each_reduction);
constexpr auto u16s = whole_twins<std::uint16_t>(DType::u16, each_reduction);
constexpr auto i32s = whole_twins<std::int32_t>(DType::i32, each_reduction);
constexpr auto u32s = whole_twins<std::uint32_t>(DType::u32, each_reduction);
constexpr auto i64s = whole_twins<std::int64_t>(DType::i64, each_reduction);
constexpr auto u64s = whole_twins<std::uint64_t>(DType::u64, each_reduction);

const Registered registered[] = {{this_isa, i8s},  {this_isa, u8s},  {this_isa, i16s}, {this_isa, u16s},
                                 {this_isa, i32s}, {this_isa, u32s}, {this_isa, i64s}, {this_isa, u64s}};

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
