// The functions over arrays: bad input, threads, shards, in place.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "kernels/dispatch/parallel.h"
#include "kernels/reduce/cast.h"
#include "kernels/reduce/elementwise.h"
#include "kernels/reduce/reduce.h"
#include "kernels/types/convert.h"
#include "kernels/types/mx.h"
#include "tests/why.h"

namespace trellis::kernels {
namespace {

std::vector<float> numbers(std::size_t n, std::uint64_t seed) {
  std::vector<float> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = static_cast<float>(random32({seed, 1}, i)) * 0x1p-30F - 2;
  return all;
}

TEST(Arguments, AreChecked) {
  std::vector<float> a(64), b(64);
  std::vector<std::uint16_t> h(64);
  const void* const sources[] = {a.data(), b.data()};
  const auto has = [&](const std::string& words, const std::function<void()>& call) {
    EXPECT_NE(why(call).find(words), std::string::npos) << words << " in: " << why(call);
  };
  has("src is null and 256 bytes", [&] { cast(DType::f32, nullptr, DType::bf16, h.data(), 64); });
  has("dst is null", [&] { cast(DType::f32, a.data(), DType::bf16, nullptr, 64); });
  has("overlaps", [&] { cast(DType::f32, a.data(), DType::bf16, a.data() + 3, 8); });
  has("overlaps", [&] { cast(DType::f32, a.data(), DType::bf16, a.data(), 8); });
  has("from i32 to u8", [&] { cast(DType::i32, a.data(), DType::u8, h.data(), 8); });
  has("-1 threads", [&] { cast(DType::f32, a.data(), DType::bf16, h.data(), 8, {.threads = -1}); });
  has("memory can hold", [&] { cast(DType::f32, a.data(), DType::bf16, h.data(), std::size_t{1} << 62); });
  has("last index", [&] { cast(DType::f32, a.data(), DType::bf16, h.data(), 8, {.random = {.first = ~0ULL}}); });
  has("0 sources", [&] { reduce(Reduction::sum, DType::f32, {}, a.data(), 8); });
  has("overlaps", [&] { reduce(Reduction::sum, DType::f32, sources, a.data() + 1, 8); });
  has("no truncate rounding for bf16",
      [&] { reduce(Reduction::sum, DType::bf16, sources, h.data(), 8, {.rounding = Rounding::truncate}); });
  has("no factor for i32", [&] { reduce(Reduction::scaled_sum, DType::i32, sources, h.data(), 8, {.factor = 1e30}); });
  has("scale: i8", [&] { scale(DType::i8, 2, a.data(), b.data(), 8); });
  has("y at", [&] { axpy(DType::f32, 2, a.data(), a.data(), 8); });
  has("whole blocks", [&] { mx_encode(MxFormat::mxfp8_e4m3, a.data(), b.data(), nullptr, 33); });
  EXPECT_THROW(reduction_named("mean"), std::invalid_argument);
}

TEST(Arguments, NothingIsFine) {
  cast(DType::f32, nullptr, DType::bf16, nullptr, 0);
  fill(DType::f32, nullptr, 0, 1);
  const void* const sources[] = {nullptr};
  reduce(Reduction::sum, DType::bf16, sources, nullptr, 0);
}

TEST(Parallel, ResultsDoNotDependOnThreads) {
  constexpr std::size_t n = 100'001;
  const auto a = numbers(n, 1), b = numbers(n, 2);
  const void* const sources[] = {a.data(), b.data()};
  std::vector<std::uint16_t> one(n), many(n);
  std::vector<float> sum_one(n), sum_many(n);
  for (int threads : {1, 2, 3, 7, 16}) {
    const Random random{.seed = 1, .step = 2, .tensor = 3, .first = 12345};
    auto& to = threads == 1 ? one : many;
    auto& sum = threads == 1 ? sum_one : sum_many;
    cast(DType::f32, a.data(), DType::bf16, to.data(), n, {Rounding::stochastic, random, threads});
    reduce(Reduction::sum, DType::f32, sources, sum.data(), n, {.threads = threads});
    if (threads == 1) continue;
    EXPECT_EQ(one, many);
    EXPECT_EQ(sum_one, sum_many);
  }
}

TEST(Parallel, ExceptionsComeOut) {
  EXPECT_THROW(parallel(2, 10,
                        [](std::size_t from, std::size_t) {
                          if (from > 0) throw std::runtime_error("second");
                        }),
               std::runtime_error);
}

TEST(Cast, WideIntegersBecomeTheNearestDoubleAndFloat) {
  std::vector<std::int64_t> from;
  for (const int bit : {0, 23, 24, 25, 52, 53, 54, 60, 62})
    for (const std::int64_t more : {-3, -2, -1, 0, 1, 2, 3, 1 << 9, (1 << 9) + 1})
      for (const std::int64_t sign : {-1, 1}) from.push_back(sign * ((std::int64_t{1} << bit) + more));
  std::vector<double> wide(from.size());
  std::vector<float> narrow(from.size());
  cast(DType::i64, from.data(), DType::f64, wide.data(), from.size());
  cast(DType::i64, from.data(), DType::f32, narrow.data(), from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(wide[i], static_cast<double>(from[i])) << from[i];
    EXPECT_EQ(narrow[i], static_cast<float>(from[i])) << from[i];
  }
  cast(DType::u64, from.data(), DType::f64, wide.data(), from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    EXPECT_EQ(wide[i], static_cast<double>(static_cast<std::uint64_t>(from[i]))) << from[i];
}

TEST(Shards, GiveTheBitsOfTheWhole) {
  constexpr std::size_t n = 5000;
  const auto a = numbers(n, 3);
  std::vector<std::uint16_t> whole(n), parts(n);
  for (DType to : {DType::bf16, DType::f16}) {
    cast(DType::f32, a.data(), to, whole.data(), n, {Rounding::stochastic, {.seed = 7}});
    for (std::size_t at = 0, length = 1; at < n; at += length, length = length * 2 + 1) {
      length = std::min(length, n - at);
      cast(DType::f32, a.data() + at, to, parts.data() + at, length, {Rounding::stochastic, {.seed = 7, .first = at}});
    }
    EXPECT_EQ(whole, parts);
  }
}

TEST(Reduce, ByHand) {
  const std::vector<std::int32_t> a = {7, -7, 2147483647}, b = {2, 2, 1};
  const void* const sources[] = {a.data(), b.data()};
  std::vector<std::int32_t> out(3);
  const auto with = [&](Reduction op, double factor = 1) {
    reduce(op, DType::i32, sources, out.data(), 3, {.factor = factor});
    return out;
  };
  EXPECT_EQ(with(Reduction::sum), (std::vector<std::int32_t>{9, -5, -2147483647 - 1}));
  EXPECT_EQ(with(Reduction::prod), (std::vector<std::int32_t>{14, -14, 2147483647}));
  EXPECT_EQ(with(Reduction::min), (std::vector<std::int32_t>{2, -7, 1}));
  EXPECT_EQ(with(Reduction::max), (std::vector<std::int32_t>{7, 2, 2147483647}));
  EXPECT_EQ(with(Reduction::avg), (std::vector<std::int32_t>{4, -2, -1073741824}));
  EXPECT_EQ(with(Reduction::scaled_sum, 3), (std::vector<std::int32_t>{27, -15, -2147483647 - 1}));
}

// Sums 256 and eight times 1 in bf16: one rounding at the end gives 264, a rounding at each addition 256.
TEST(Reduce, RoundsOnce) {
  std::vector<std::uint16_t> large = {bf16_nearest(256)}, one = {bf16_nearest(1)};
  std::vector<const void*> sources(9, one.data());
  sources[0] = large.data();
  reduce(Reduction::sum, DType::bf16, sources, large.data(), 1);  // in place
  EXPECT_EQ(264, widen_bf16(large[0]));
}

TEST(Reduce, StoresPastTheCachesAreOnlyAnotherWay) {
  for (const std::size_t n : {1U, 63U, 1000U})
    for (const std::size_t shift : {0U, 1U, 16U}) {
      const std::vector<float> a = numbers(n + shift, 1), b = numbers(n + shift, 2);
      const void* const sources[] = {a.data() + shift, b.data()};
      std::vector<float> cached(n + shift), streamed(n + shift);
      reduce(Reduction::sum, DType::f32, sources, cached.data() + shift, n);
      reduce(Reduction::sum, DType::f32, sources, streamed.data() + shift, n, {.stores = Stores::streaming});
      EXPECT_EQ(streamed, cached) << n << " floats from " << shift;
    }
}

TEST(Reduce, NanAndZeros) {
  const std::vector<float> a = {NAN, 1, -0.0F, INFINITY}, b = {1, -NAN, 0.0F, -INFINITY};
  const void* const sources[] = {a.data(), b.data()};
  std::vector<std::uint32_t> out(4);
  for (Reduction op : {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max, Reduction::avg}) {
    reduce(op, DType::f32, sources, out.data(), 4);
    EXPECT_EQ(0x7FC00000U, out[0]);
    EXPECT_EQ(0x7FC00000U, out[1]);
    if (op == Reduction::sum) {
      EXPECT_EQ(0x7FC00000U, out[3]);
    }
    if (op == Reduction::min) {
      EXPECT_EQ(0x80000000U, out[2]);
    }
    if (op == Reduction::max) {
      EXPECT_EQ(0U, out[2]);
    }
  }
}

TEST(Elementwise, ByHand) {
  std::vector<float> x = {1, 2, 3}, y = {10, 20, 30};
  axpy(DType::f32, 2, x.data(), y.data(), 3);
  EXPECT_EQ(y, (std::vector<float>{12, 24, 36}));
  scale(DType::f32, 0.5, y.data(), y.data(), 3);
  EXPECT_EQ(y, (std::vector<float>{6, 12, 18}));
  fill(DType::f32, y.data(), 3, -1);
  EXPECT_EQ(y, (std::vector<float>{-1, -1, -1}));
}

class Mx : public testing::TestWithParam<MxFormat> {};

TEST_P(Mx, WhatIsRepresentableComesBack) {
  const MxFormat f = GetParam();
  std::vector<std::uint8_t> elements(mx_element_bytes(f, 256)), back(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<std::uint8_t>(i * 37 & 0x76);
  std::vector<std::uint8_t> scales = {0, 1, 100, 127, 128, 130, 90, 200}, scales_back(8);
  std::vector<float> values(256), again(256);
  mx_decode(f, elements.data(), scales.data(), values.data(), 256);
  mx_encode(f, values.data(), back.data(), scales_back.data(), 256);
  mx_decode(f, back.data(), scales_back.data(), again.data(), 256);
  EXPECT_EQ(values, again);
}

TEST_P(Mx, SpecialBlocks) {
  const MxFormat f = GetParam();
  std::vector<float> values(64, 0.0F), back(64);
  values[40] = NAN;
  std::vector<std::uint8_t> elements(mx_element_bytes(f, 64)), scales(2);
  mx_encode(f, values.data(), elements.data(), scales.data(), 64);
  EXPECT_EQ(scales, (std::vector<std::uint8_t>{0, 255}));
  mx_decode(f, elements.data(), scales.data(), back.data(), 64);
  EXPECT_EQ(0, back[0]);
  EXPECT_TRUE(std::isnan(back[33]));
}

// Computed by hand: the largest value is 7, with exponent 2; the formats' exponents are 8, 15 and 2.
TEST_P(Mx, ScalesAsDocumented) {
  const MxFormat f = GetParam();
  std::vector<float> values(32, 0.75F), back(32);
  values[3] = -7;
  std::vector<std::uint8_t> elements(mx_element_bytes(f, 32)), scale(1);
  const int exponent = f == MxFormat::mxfp8_e4m3 ? 8 : f == MxFormat::mxfp8_e5m2 ? 15 : 2;
  mx_encode(f, values.data(), elements.data(), scale.data(), 32);
  EXPECT_EQ(127 + 2 - exponent, scale[0]);
  mx_decode(f, elements.data(), scale.data(), back.data(), 32);
  EXPECT_EQ(f == MxFormat::mxfp4_e2m1 ? -6 : -7, back[3]);  // 6 is the largest of e2m1: it saturates
  mx_encode(f, values.data(), elements.data(), scale.data(), 32, {.scale = MxScaleRule::trainium});
  EXPECT_EQ(127 + 2 - exponent + 1, scale[0]);
  mx_decode(f, elements.data(), scale.data(), back.data(), 32);
  EXPECT_EQ(f == MxFormat::mxfp4_e2m1 ? -8 : -7, back[3]);  // 3.5 halfway between 3 and 4
}

TEST_P(Mx, ErrorIsSmall) {
  const MxFormat f = GetParam();
  const double bound = f == MxFormat::mxfp8_e4m3 ? 1.0 / 8 : 1.0 / 4;  // saturation at the top included
  auto values = numbers(320, 5);
  std::vector<float> back(320);
  std::vector<std::uint8_t> elements(mx_element_bytes(f, 320)), scales(10);
  for (Rounding r : {Rounding::nearest, Rounding::stochastic}) {
    mx_encode(f, values.data(), elements.data(), scales.data(), 320, {.rounding = r});
    mx_decode(f, elements.data(), scales.data(), back.data(), 320);
    for (std::size_t i = 0; i < 320; ++i) EXPECT_NEAR(values[i], back[i], 2 * bound) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Mx, testing::ValuesIn(mx_formats),
                         [](const auto& i) { return std::string(name(i.param)); });

}  // namespace
}  // namespace trellis::kernels
