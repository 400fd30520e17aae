#include "kernels/types/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace trellis::kernels {
namespace {

template <class T>
T read(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void write(void* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T>
double widened(T value) {
  if constexpr (sizeof(T) < 8) return static_cast<double>(value);
  const bool negative = value < 0;
  auto size = negative ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  if (const int spare = 11 - std::countl_zero(size); size != 0 && spare > 0) {
    const bool lost = (size & ((std::uint64_t{1} << spare) - 1)) != 0;
    size = (size >> spare << spare) | (std::uint64_t{lost} << spare);
  }
  return negative ? -static_cast<double>(size) : static_cast<double>(size);
}

template <class T>
T saturated(double value) {
  if (std::isnan(value)) return 0;
  const double whole = std::nearbyint(value);
  const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);  // one past the largest
  if (whole >= end) return std::numeric_limits<T>::max();
  if (whole < -end || (!std::numeric_limits<T>::is_signed && whole < 0)) return std::numeric_limits<T>::min();
  return static_cast<T>(whole);
}

// m / 2^drop, rounded to a whole number; drop > 0. `random` has `bits` bits.
std::uint64_t rounded(std::uint64_t m, int drop, Rounding rounding, std::uint32_t random, int bits) {
  const std::uint64_t kept = drop > 63 ? 0 : m >> drop;
  const std::uint64_t rest = drop > 63 ? m : m & ((std::uint64_t{1} << drop) - 1);
  if (rounding == Rounding::truncate) return kept;
  if (rounding == Rounding::nearest) {
    if (drop > 63) return 0;
    const std::uint64_t half = std::uint64_t{1} << (drop - 1);
    return kept + (rest > half || (rest == half && kept % 2 == 1));
  }
  const int move = drop - bits;  // rest / 2^drop as a fraction of `bits` bits
  const std::uint64_t fraction = move > 63 ? 0 : move >= 0 ? rest >> move : rest << -move;
  return kept + ((fraction + random) >> bits);
}

}  // namespace

double decode(Format f, std::uint32_t code) {
  const bool negative = (code & f.sign()) != 0;
  const std::uint32_t size = code & (f.sign() - 1);
  const double sign = negative ? -1 : 1;
  if (f.infinities ? size > f.infinity() : size == f.nan()) {
    const std::uint64_t payload = std::uint64_t{size & ((1U << f.mantissa_bits) - 1)} << (52 - f.mantissa_bits);
    return std::bit_cast<double>((std::uint64_t{negative} << 63) | 0x7FF8'0000'0000'0000 | payload);
  }
  if (f.infinities && size == f.infinity()) return sign * std::numeric_limits<double>::infinity();
  const int field = static_cast<int>(size >> f.mantissa_bits);
  const std::uint32_t fraction = size & ((1U << f.mantissa_bits) - 1);
  const std::uint32_t whole = field == 0 ? fraction : fraction | (1U << f.mantissa_bits);
  return sign * std::ldexp(whole, std::max(field, 1) - f.bias() - f.mantissa_bits);
}

std::uint32_t encode(Format f, double value, Rounding rounding, std::uint32_t random, int bits) {
  const auto u = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = u >> 63 != 0 ? f.sign() : 0;
  if (std::isnan(value)) {
    const auto payload = static_cast<std::uint32_t>((u & 0xF'FFFF'FFFF'FFFF) >> (52 - f.mantissa_bits));
    return sign | f.nan() | (f.infinities ? payload : 0);
  }
  if (std::isinf(value)) return sign | (f.infinities ? f.infinity() : f.nan());
  if (value == 0) return sign;
  int exponent = 0;  // value = m * 2^(exponent - 53), m of exactly 53 bits
  const auto m = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 53));
  const int field = std::max(exponent - 1 + f.bias(), 1);
  const int drop = field - f.bias() - f.mantissa_bits - (exponent - 53);
  const std::uint64_t kept = rounded(m, drop, rounding, random, bits);
  // `kept` still has a normal number's leading bit, which adds one to the exponent field: hence field - 1. A carry from
  // rounding moves into the field by itself.
  const std::uint64_t code = (static_cast<std::uint64_t>(field - 1) << f.mantissa_bits) + kept;
  if (code <= f.largest()) return sign | static_cast<std::uint32_t>(code);
  if (rounding == Rounding::truncate) return sign | f.largest();
  return sign | (f.infinities ? f.infinity() : f.nan());
}

double load(DType d, const void* at) {
  switch (d) {
    case DType::f64:
      return read<double>(at);
    case DType::f32:
      return decode(f32_format, read<std::uint32_t>(at));
    case DType::tf32:
      return decode(tf32_format, read<std::uint32_t>(at) >> 13);
    case DType::f16:
    case DType::bf16:
      return decode(format_of(d), read<std::uint16_t>(at));
    case DType::i8:
      return read<std::int8_t>(at);
    case DType::u8:
      return read<std::uint8_t>(at);
    case DType::i16:
      return read<std::int16_t>(at);
    case DType::u16:
      return read<std::uint16_t>(at);
    case DType::i32:
      return read<std::int32_t>(at);
    case DType::u32:
      return read<std::uint32_t>(at);
    case DType::i64:
      return widened(read<std::int64_t>(at));
    case DType::u64:
      return widened(read<std::uint64_t>(at));
    default:
      return decode(format_of(d), read<std::uint8_t>(at));
  }
}

void store(DType d, void* at, double value, Rounding rounding, std::uint32_t random) {
  const auto code = [&] { return encode(format_of(d), value, rounding, random, random_bits(d)); };
  switch (d) {
    case DType::f64:
      return write(at, value);
    case DType::f32:
      return write(at, code());
    case DType::tf32:
      return write(at, code() << 13);
    case DType::f16:
    case DType::bf16:
      return write(at, static_cast<std::uint16_t>(code()));
    case DType::i8:
      return write(at, saturated<std::int8_t>(value));
    case DType::u8:
      return write(at, saturated<std::uint8_t>(value));
    case DType::i16:
      return write(at, saturated<std::int16_t>(value));
    case DType::u16:
      return write(at, saturated<std::uint16_t>(value));
    case DType::i32:
      return write(at, saturated<std::int32_t>(value));
    case DType::u32:
      return write(at, saturated<std::uint32_t>(value));
    case DType::i64:
      return write(at, saturated<std::int64_t>(value));
    case DType::u64:
      return write(at, saturated<std::uint64_t>(value));
    default:
      return write(at, static_cast<std::uint8_t>(code()));
  }
}

}  // namespace trellis::kernels
