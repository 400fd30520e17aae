// 16-bit and 8-bit floats for host code, with the operators of CUDA's types: computed in float, rounded once to
// nearest, ties to even.
#pragma once

#ifdef __cplusplus

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace trellis_cuda {

// A format: the numbers of its exponent and mantissa bits, the bit patterns of the largest finite value and of a NaN,
// and whether values that are too large become the largest finite value, or else infinity.
template <int exponent_bits, int mantissa_bits, unsigned largest, unsigned not_a_number, bool saturates>
struct NarrowFormat {
  static constexpr int bits = 1 + exponent_bits + mantissa_bits;
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr unsigned sign_bit = 1U << (bits - 1);
  static constexpr unsigned beyond = saturates ? largest : largest + 1;

  static unsigned of(double value) {
    std::uint64_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    const unsigned sign = wide >> 63 != 0 ? sign_bit : 0;
    const int exponent = static_cast<int>(wide >> 52 & 0x7FF) - 1023;
    const std::uint64_t mantissa = wide & ((std::uint64_t{1} << 52) - 1);
    if (exponent == 1024) return mantissa != 0 ? not_a_number : sign | beyond;
    const int below = exponent < 1 - bias ? 1 - bias - exponent : 0;  // bits lost in a subnormal
    const int shift = 52 - mantissa_bits + below;
    if (shift > 54) return sign;
    const std::uint64_t significand = mantissa | std::uint64_t{1} << 52;
    const std::uint64_t rest = significand & ((std::uint64_t{1} << shift) - 1), half = std::uint64_t{1} << (shift - 1);
    std::uint64_t kept = significand >> shift;
    if (rest > half || (rest == half && kept % 2 == 1)) ++kept;
    if (below == 0) kept += static_cast<std::uint64_t>(exponent + bias - 1) << mantissa_bits;
    return sign | (kept > largest ? beyond : static_cast<unsigned>(kept));
  }

  static float value_of(unsigned pattern) {
    const unsigned size = pattern & (sign_bit - 1), exponent = size >> mantissa_bits;
    const unsigned mantissa = size & ((1U << mantissa_bits) - 1);
    const bool negative = (pattern & sign_bit) != 0;
    if (exponent == 0) {
      const float value = std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
      return negative ? -value : value;
    }
    std::uint32_t wide = negative ? 0x80000000U : 0;
    if (size > largest)
      wide |= exponent_bits != 4 && mantissa == 0 ? 0x7F800000U : 0x7FC00000U;  // 4 exponent bits: no infinity
    else
      wide |= static_cast<std::uint32_t>(static_cast<int>(exponent) + 127 - bias) << 23 | mantissa
                                                                                              << (23 - mantissa_bits);
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
};

using Half = NarrowFormat<5, 10, 0x7BFF, 0x7FFF, false>;
using Bfloat16 = NarrowFormat<8, 7, 0x7F7F, 0x7FFF, false>;
using E4M3 = NarrowFormat<4, 3, 0x7E, 0x7F, true>;
using E5M2 = NarrowFormat<5, 2, 0x7B, 0x7E, true>;

template <class N>
using Arithmetic = typename std::enable_if<std::is_arithmetic<N>::value, int>::type;

// Base of the types that store a value in this format.
template <class Own, class Format_, class Storage>
struct Narrow {
  Narrow() = default;
  template <class N, Arithmetic<N> = 0>
  Narrow(N value) : pattern(static_cast<Storage>(Format_::of(static_cast<double>(value)))) {}
  operator float() const { return Format_::value_of(pattern); }

  friend Own operator+(Own a, Own b) { return Own(float(a) + float(b)); }
  friend Own operator-(Own a, Own b) { return Own(float(a) - float(b)); }
  friend Own operator*(Own a, Own b) { return Own(float(a) * float(b)); }
  friend Own operator/(Own a, Own b) { return Own(float(a) / float(b)); }
  friend Own& operator+=(Own& a, Own b) { return a = a + b; }
  friend Own& operator-=(Own& a, Own b) { return a = a - b; }
  friend Own& operator*=(Own& a, Own b) { return a = a * b; }
  friend Own& operator/=(Own& a, Own b) { return a = a / b; }
  friend Own operator-(Own a) { return Own(-float(a)); }
  friend bool operator==(Own a, Own b) { return float(a) == float(b); }
  friend bool operator!=(Own a, Own b) { return float(a) != float(b); }
  friend bool operator<(Own a, Own b) { return float(a) < float(b); }
  friend bool operator>(Own a, Own b) { return float(a) > float(b); }
  friend bool operator<=(Own a, Own b) { return float(a) <= float(b); }
  friend bool operator>=(Own a, Own b) { return float(a) >= float(b); }

  Storage pattern;
};

}  // namespace trellis_cuda

// CUDA's functions for a 16-bit type.
#define TRELLIS_CUDA_ARITHMETIC(type)                                         \
  inline type __hadd(type a, type b) { return a + b; }                        \
  inline type __hsub(type a, type b) { return a - b; }                        \
  inline type __hmul(type a, type b) { return a * b; }                        \
  inline type __hdiv(type a, type b) { return a / b; }                        \
  inline type __hneg(type a) { return -a; }                                   \
  inline type __habs(type a) { return float(a) < 0 ? -a : a; }                \
  inline bool __hisnan(type a) { return float(a) != float(a); }               \
  inline bool __heq(type a, type b) { return a == b; }                        \
  inline bool __hne(type a, type b) { return a != b; }                        \
  inline bool __hlt(type a, type b) { return a < b; }                         \
  inline bool __hle(type a, type b) { return a <= b; }                        \
  inline bool __hgt(type a, type b) { return a > b; }                         \
  inline bool __hge(type a, type b) { return a >= b; }                        \
  inline type __hmin(type a, type b) { return __hisnan(a) || b < a ? b : a; } \
  inline type __hmax(type a, type b) { return __hisnan(a) || b > a ? b : a; }

#endif
