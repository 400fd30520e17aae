// The element types that kernels know: their names, their sizes, and how the floating ones are laid out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace trellis::kernels {

// f8e4m3 and f8e3m4 are the IEEE-like ones that Trainium names so, with infinities (largest 240 and 15.5); f8e4m3fn is
// the OCP one, without infinities (largest 448). tf32 lies in four bytes, as an f32 whose last 13 bits are zero.
enum class DType : std::uint8_t {
  f64,
  f32,
  tf32,
  f16,
  bf16,
  f8e3m4,
  f8e4m3,
  f8e4m3fn,
  f8e5m2,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64
};
inline constexpr std::size_t dtype_count = 17;

enum class Rounding : std::uint8_t { nearest, truncate, stochastic };  // nearest: ties to even
inline constexpr std::size_t rounding_count = 3;

constexpr std::string_view name(DType d) {
  constexpr std::string_view names[] = {"f64", "f32", "tf32", "f16", "bf16", "f8e3m4", "f8e4m3", "f8e4m3fn", "f8e5m2",
                                        "i8",  "u8",  "i16",  "u16", "i32",  "u32",    "i64",    "u64"};
  return names[static_cast<std::size_t>(d)];
}

constexpr std::string_view name(Rounding r) {
  constexpr std::string_view names[] = {"nearest", "truncate", "stochastic"};
  return names[static_cast<std::size_t>(r)];
}

inline constexpr std::uint8_t dtype_sizes[] = {8, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8};
constexpr std::size_t size_of(DType d) { return dtype_sizes[static_cast<std::size_t>(d)]; }

constexpr bool is_float(DType d) { return d <= DType::f8e5m2; }

std::span<const DType> dtypes();
DType dtype_named(std::string_view);        // throws invalid_argument, naming the known ones
Rounding rounding_named(std::string_view);  // the same

// A binary floating format of at most 32 bits. Without infinities the largest code is the only NaN (f8e4m3fn).
struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool infinities = true;

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint32_t sign() const { return std::uint32_t{1} << (exponent_bits + mantissa_bits); }
  constexpr std::uint32_t infinity() const { return ((1U << exponent_bits) - 1) << mantissa_bits; }  // if there is one
  constexpr std::uint32_t largest() const { return infinities ? infinity() - 1 : sign() - 2; }       // finite
  constexpr std::uint32_t nan() const { return infinities ? infinity() | (1U << (mantissa_bits - 1)) : sign() - 1; }
  constexpr bool operator==(const Format&) const = default;
};

inline constexpr Format f32_format{8, 23}, tf32_format{8, 10}, f16_format{5, 10}, bf16_format{8, 7},
    f8e3m4_format{3, 4}, f8e4m3_format{4, 3}, f8e4m3fn_format{4, 3, false}, f8e5m2_format{5, 2};

// The bit layout of a floating type; f64 has none here.
constexpr Format format_of(DType d) {
  constexpr Format formats[] = {f32_format,    tf32_format,   f16_format,      bf16_format,
                                f8e3m4_format, f8e4m3_format, f8e4m3fn_format, f8e5m2_format};
  return formats[static_cast<std::size_t>(d) - 1];
}

// How many random bits a stochastic rounding to the type uses: 16 for bf16, as many as it drops from an f32; else 32.
constexpr int random_bits(DType d) { return d == DType::bf16 ? 16 : 32; }

}  // namespace trellis::kernels
