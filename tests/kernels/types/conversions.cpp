// The scalar conversions, over all codes and all boundaries, against slow arithmetic that shares nothing with them.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "kernels/types/convert.h"
#include "kernels/types/random.h"

namespace trellis::kernels {
namespace {

const DType small_types[] = {DType::f16, DType::bf16, DType::f8e3m4, DType::f8e4m3, DType::f8e4m3fn, DType::f8e5m2};

// The value of a code from the definition of the format, by sums of powers of two.
double by_definition(DType d, std::uint32_t code) {
  struct Layout {
    int exponent, mantissa;
  };
  const std::map<DType, Layout> layouts = {{DType::f16, {5, 10}},   {DType::bf16, {8, 7}},     {DType::f8e3m4, {3, 4}},
                                           {DType::f8e4m3, {4, 3}}, {DType::f8e4m3fn, {4, 3}}, {DType::f8e5m2, {5, 2}}};
  const Layout l = layouts.at(d);
  const int width = 1 + l.exponent + l.mantissa;
  int exponent = 0;
  for (int i = 0; i < l.exponent; ++i) exponent += static_cast<int>(code >> (l.mantissa + i) & 1) << i;
  double fraction = 0;
  for (int i = 0; i < l.mantissa; ++i) fraction += (code >> i & 1) * std::pow(2.0, i - l.mantissa);
  const double sign = code >> (width - 1) & 1 ? -1 : 1;
  const int all_ones = (1 << l.exponent) - 1, bias = all_ones / 2;
  if (exponent == all_ones && d != DType::f8e4m3fn) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == all_ones && fraction == 0.875) return NAN;
  return exponent == 0 ? sign * fraction * std::pow(2.0, 1 - bias)
                       : sign * (1 + fraction) * std::pow(2.0, exponent - bias);
}

std::uint32_t code_count(DType d) { return 1U << (size_of(d) * 8); }

TEST(Conversions, DecodeEveryCode) {
  for (DType d : small_types)
    for (std::uint32_t code = 0; code < code_count(d); ++code) {
      const double expected = by_definition(d, code), got = decode(format_of(d), code);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(got)) << name(d) << " " << code;
        continue;
      }
      ASSERT_EQ(std::bit_cast<std::uint64_t>(expected), std::bit_cast<std::uint64_t>(got)) << name(d) << " " << code;
    }
}

TEST(Conversions, EveryCodeComesBack) {
  for (DType d : small_types)
    for (Rounding r : {Rounding::nearest, Rounding::truncate, Rounding::stochastic})
      for (std::uint32_t code = 0; code < code_count(d); ++code) {
        const Format f = format_of(d);
        const double value = decode(f, code);
        const std::uint32_t back = encode(f, value, r, 0xFFFF, random_bits(d));
        if (std::isnan(value)) {
          ASSERT_TRUE(std::isnan(decode(f, back))) << name(d) << " " << code;
        } else {
          ASSERT_EQ(code, back) << name(d) << " " << name(r);
        }
      }
}

// Between each code and the next: just above, below, at, and around the middle.
TEST(Conversions, RoundsBetweenEveryTwoCodes) {
  for (DType d : small_types) {
    const Format f = format_of(d);
    for (std::uint32_t code = 0; code < f.largest(); ++code) {
      const double low = decode(f, code), high = decode(f, code + 1), middle = (low + high) / 2;
      const std::uint32_t even = code % 2 == 0 ? code : code + 1;
      const std::pair<double, std::uint32_t> cases[] = {{std::nextafter(low, high), code},
                                                        {std::nextafter(middle, low), code},
                                                        {middle, even},
                                                        {std::nextafter(middle, high), code + 1},
                                                        {std::nextafter(high, low), code + 1}};
      for (const auto& [value, expected] : cases) {
        ASSERT_EQ(expected, encode(f, value, Rounding::nearest)) << name(d) << " " << value;
        ASSERT_EQ(expected | f.sign(), encode(f, -value, Rounding::nearest)) << name(d) << " " << -value;
        ASSERT_EQ(code, encode(f, value, Rounding::truncate)) << name(d) << " " << value;
      }
    }
  }
}

TEST(Conversions, OverflowAsDocumented) {
  for (DType d : small_types) {
    const Format f = format_of(d);
    const std::uint32_t endless = f.infinities ? f.infinity() : f.nan();
    const double largest = decode(f, f.largest()), step = largest - decode(f, f.largest() - 1);
    EXPECT_EQ(f.largest(), encode(f, std::nextafter(largest + step / 2, 0.0), Rounding::nearest)) << name(d);
    EXPECT_EQ(f.largest(), encode(f, 1e300, Rounding::truncate)) << name(d);
    for (double value : {largest * 4, 1e300, double{INFINITY}})
      for (Rounding r : {Rounding::nearest, Rounding::stochastic}) EXPECT_EQ(endless, encode(f, value, r)) << name(d);
    EXPECT_EQ(endless, encode(f, INFINITY, Rounding::truncate)) << name(d);
  }
  EXPECT_EQ(240, decode(f8e4m3_format, f8e4m3_format.largest()));
  EXPECT_EQ(448, decode(f8e4m3fn_format, f8e4m3fn_format.largest()));
  EXPECT_EQ(f8e4m3fn_format.largest(), encode(f8e4m3fn_format, 464, Rounding::nearest));  // half a step beyond
  EXPECT_EQ(f8e4m3fn_format.nan(), encode(f8e4m3fn_format, 464.1, Rounding::nearest));
  EXPECT_EQ(15.5, decode(f8e3m4_format, f8e3m4_format.largest()));
  EXPECT_EQ(57344, decode(f8e5m2_format, f8e5m2_format.largest()));
}

// For each value of the dropped bits, tries all random numbers: as many must round up as the value says.
TEST(Conversions, StochasticIsExactOverAllRandomNumbers) {
  for (const std::uint32_t high : {0x3F80U, 0x0000U, 0x0001U, 0x007FU, 0x7F7FU, 0xC123U})
    for (std::uint32_t low = 0; low < 65536; low += low < 8 || low > 65520 ? 1 : 977) {
      const auto value = std::bit_cast<float>(high << 16 | low);
      std::uint32_t ups = 0;
      for (std::uint32_t r = 0; r < 65536; ++r) {
        const std::uint32_t got = bf16_stochastic(value, r);
        ASSERT_TRUE(got == high || got == high + 1);
        ups += got != high;
      }
      ASSERT_EQ(low, ups) << high;
    }
}

TEST(Conversions, ShortFormsAgreeWithTheLongOne) {
  for (std::uint64_t i = 0; i < 300'000; ++i) {
    const std::uint64_t word = random_word({1, 2}, i);
    const auto u = static_cast<std::uint32_t>(word);
    const auto r = static_cast<std::uint32_t>(word >> 48);
    const auto f =
        std::bit_cast<float>(i % 2 == 0 ? u : (u & 0xFFFF'0000) | static_cast<std::uint32_t>(0x7FFF + i / 2 % 3));
    ASSERT_EQ(encode(bf16_format, f, Rounding::nearest), bf16_nearest(f)) << u;
    ASSERT_EQ(encode(bf16_format, f, Rounding::truncate), bf16_truncated(f)) << u;
    ASSERT_EQ(encode(bf16_format, f, Rounding::stochastic, r, 16), bf16_stochastic(f, r)) << u;
  }
}

TEST(Conversions, EdgeVectors) {
  const auto f = [](std::uint32_t u) { return std::bit_cast<float>(u); };
  EXPECT_EQ(0x0001, bf16_nearest(f(0x0000FFFF)));  // which the CPU's instruction flushes to 0
  EXPECT_EQ(0x0080, bf16_nearest(f(0x007FFFFF)));
  EXPECT_EQ(0x7FC0, bf16_stochastic(f(0x7F800001), 0xFFFF));
  EXPECT_EQ(0xFFFF, bf16_stochastic(f(0xFFFFFFFF), 0xFFFF));
  EXPECT_EQ(0x7F80, bf16_stochastic(f(0x7F7FFFFF), 0x0001));
  EXPECT_EQ(0x7F7F, bf16_stochastic(f(0x7F7FFFFF), 0x0000));
}

TEST(Conversions, IntegersSaturateAndRoundOnce) {
  std::int8_t small = 1;
  store(DType::i8, &small, 1000);
  EXPECT_EQ(127, small);
  store(DType::i8, &small, -128.5);
  EXPECT_EQ(-128, small);
  store(DType::i8, &small, NAN);
  EXPECT_EQ(0, small);
  std::uint64_t large = 0;
  store(DType::u64, &large, 1e30);
  EXPECT_EQ(~std::uint64_t{0}, large);
  // 2^63 + 2^39 is the middle of two f32; one more must round up, though a double can't hold it.
  for (std::uint64_t more : {std::uint64_t{0}, std::uint64_t{1}}) {
    const std::uint64_t value = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 39) + more;
    EXPECT_EQ(encode(f32_format, load(DType::u64, &value), Rounding::nearest),
              std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  }
}

TEST(Types, HaveNames) {
  for (DType d : dtypes()) EXPECT_EQ(d, dtype_named(name(d)));
  EXPECT_THROW(dtype_named("bf17"), std::invalid_argument);
  EXPECT_THROW(rounding_named("up"), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::kernels
