// f32 to the codes of floating formats, in vectors, as encode does it one by one.
#pragma once

#include "kernels/lanes/compare_lanes.h"
#include "kernels/lanes/widen_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// m / 2^s, rounded to a whole number. m has 24 bits; s is at least 1 and may exceed 24.
template <Rounding rounding>
TRELLIS_INLINE U shifted(U m, U s, U random) {
  const U s31 = select(s < 31U, s, u_all(31));
  if constexpr (rounding == Rounding::truncate) return m >> s31;
  if constexpr (rounding == Rounding::nearest) return (m + ((u_all(1) << (s31 - 1)) - 1) + ((m >> s31) & 1)) >> s31;
  const U near = (m + (random >> (32 - s31))) >> s31;
  const U below = m >> select(s < 32U, U{}, select(s < 63U, s - 32, u_all(31)));  // s >= 32: in units of 2^-32
  const U far = select(below + random < random, u_all(1), U{});
  return select(s < 32U, near, far);
}

// The rounded code without its sign. Values beyond the largest finite one are left to the caller.
template <Format f, Rounding rounding>
TRELLIS_INLINE U rounded_size(U u, U random) {
  const U field = (u & no_sign) >> 23;
  constexpr std::uint32_t drop = 23 - f.mantissa_bits;
  if constexpr (f.exponent_bits == 8) {
    const U keep = u & no_sign;
    if constexpr (rounding == Rounding::truncate) return keep >> drop;
    if constexpr (rounding == Rounding::nearest)
      return (keep + ((1U << (drop - 1)) - 1) + ((keep >> drop) & 1)) >> drop;
    return (keep + (random >> (32 - drop))) >> drop;
  }
  const U m = (u & 0x7F'FFFF) | select(field == 0U, U{}, u_all(0x80'0000));
  const I t = (I)select(field == 0U, u_all(1), field) - (127 - f.bias());
  const I below = t < 1;
  const U s = drop + (below ? (U)(1 - t) : U{});
  const U start = below ? U{} : (U)(t - 1) << f.mantissa_bits;
  return start + shifted<rounding>(m, s, random);
}

// Like rounded_size() to nearest, for a number that is not NaN. One addition in f32 rounds it: that of a power of two
// so large that the last bit of the sum is the last one that the format keeps. Numbers larger than the one whose code
// follows the largest finite one are first replaced by it.
template <Format f>
TRELLIS_INLINE U nearest_size(U u) {
  constexpr int drop = 23 - f.mantissa_bits;
  constexpr auto least = static_cast<std::int32_t>((128 - f.bias()) << 23);  // the exponent of the least normal number
  constexpr auto most = static_cast<std::int32_t>(((f.largest() + 1) << drop) + ((127U - f.bias()) << 23));
  const I size = smaller((I)(u & no_sign), (I)u_all(most));
  const I exponent = larger(size & 0x7F80'0000, (I)u_all(least));
  const I power = exponent + (drop << 23);
  const U sum = as_u((F)size + (F)power);
  return (sum - (U)power) + ((U)(exponent - least) >> drop);
}

template <Format f, Rounding rounding>
TRELLIS_INLINE U narrowed_small(F value, U random) {
  const U u = as_u(value);
  constexpr std::uint32_t endless = f.infinities ? f.infinity() : f.nan();
  U code;
  if constexpr (rounding == Rounding::nearest && f.exponent_bits < 8) {
    code = nearest_size<f>(u);
  } else {
    const U size = rounded_size<f, rounding>(u, random);
    code = select(size > f.largest(), u_all(rounding == Rounding::truncate ? f.largest() : endless), size);
    code = select((u & no_sign) == 0x7F80'0000U, u_all(endless), code);
  }
  const U payload = (u & 0x7F'FFFF) >> (23 - f.mantissa_bits);
  code = select(value != value, f.infinities ? payload | f.nan() : u_all(f.nan()), code);
  return code | ((u >> 31) << (f.bits() - 1));
}

// NaNs keep their sign and payload in a conversion; those that arithmetic made become the canonical one.
enum class NanPolicy { kept, canonical };

// random: 16 bits for bf16, else 32; only stochastic rounding uses it.
template <Format f, Rounding rounding, NanPolicy nans = NanPolicy::kept>
TRELLIS_INLINE U narrowed(F value, U random) {
  const U u = as_u(value);
  if constexpr (f == f32_format) {
    return select(value != value, nans == NanPolicy::kept ? u | 0x40'0000U : u_all(canonical_nan), u);
  } else if constexpr (f == bf16_format) {
    const U quiet = nans == NanPolicy::kept ? u | 0x40'0000U : u_all(canonical_nan);
    U sum = u;
    if constexpr (rounding == Rounding::nearest) sum = u + (((u >> 16) & 1) + 0x7FFF);
    if constexpr (rounding == Rounding::stochastic) sum = u + random;
    return select(value != value, quiet, sum) >> 16;
  } else {
    const U code = narrowed_small<f, rounding>(nans == NanPolicy::kept ? value : canonical(value), random);
    return f == tf32_format ? code << 13 : code;
  }
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
