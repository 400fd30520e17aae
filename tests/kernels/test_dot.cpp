// Dot, norm and clipping: the defined order to the bit, exactness, threads, bad input.
#include <gtest/gtest.h>

#include "kernels/dispatch/parallel.h"
#include "kernels/reduce/clip_factor.h"
#include "kernels/reduce/dot.h"
#include "tests/kernels/optimizer_case.h"

namespace trellis::kernels {
namespace {

StateArray numbers(DType type, std::size_t n, std::uint64_t seed) {
  Case c(WeightStorage::f32, DType::f32, DType::f32, n);
  c.fill(seed);
  StateArray a(type, n);
  for (std::size_t i = 0; i < n; ++i) a.set(i, c.values.at(i));
  return a;
}

// The order that dot.h defines, stated in another way: a tree over the sums whose numbers end in the same bits.
double tree(const StateArray& x, const StateArray& y, std::size_t begin, std::size_t end, std::size_t j,
            std::size_t width) {
  if (width < dot_sums) return tree(x, y, begin, end, j, 2 * width) + tree(x, y, begin, end, j + width, 2 * width);
  double sum = 0;
  for (std::size_t i = begin + j; i < end; i += dot_sums) sum += x.at(i) * y.at(i);
  return sum;
}

double in_order(const StateArray& x, const StateArray& y, std::size_t n) {
  double sum = 0;
  for (std::size_t begin = 0; begin < n; begin += part_elements)
    sum += tree(x, y, begin, std::min(n, begin + part_elements), 0, 1);
  return sum;
}

constexpr DType dot_types[] = {DType::f32, DType::bf16, DType::f16};

TEST(Dot, IsTheDefinedOrderToTheBit) {
  for (DType type : dot_types)
    for (const std::size_t n : {0, 1, 31, 32, 33, 257, 16383, 16384, 16385, 50000}) {
      StateArray x = numbers(type, n, 1), y = numbers(type, n, 2);
      for (const int threads : {1, 2, 5}) {
        ASSERT_EQ(dot(type, x.from(0), y.from(0), n, threads), in_order(x, y, n)) << name(type) << " " << n;
        ASSERT_EQ(sum_of_squares(type, x.from(0), n, threads), in_order(x, x, n)) << name(type) << " " << n;
      }
      EXPECT_EQ(dot(type, x.from(0), x.from(0), n), sum_of_squares(type, x.from(0), n));
    }
}

// Products are exact, so only additions round: at most 512 + 5 in a part, and one a part.
TEST(Dot, IsAsExactAsItsAdditions) {
  constexpr std::size_t n = 100000;
  StateArray x = numbers(DType::f32, n, 3), y = numbers(DType::f32, n, 4);
  long double exact = 0, size = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const long double product = static_cast<long double>(x.at(i)) * y.at(i);
    exact += product, size += std::fabs(product);
  }
  EXPECT_NEAR(dot(DType::f32, x.from(0), y.from(0), n), static_cast<double>(exact),
              static_cast<double>(size) * (512 + 5 + static_cast<double>(parts_of(n))) * 0x1p-53);
}

// Sixteen squares of 48 bits each add up exactly in the 53 bits of a double.
TEST(Dot, HugeAndTinyElementsNeitherOverflowNorVanish) {
  StateArray huge(DType::f32, 16, 0x1.FFFFFEp127);
  EXPECT_EQ(sum_of_squares(DType::f32, huge.from(0), 16), 16 * 0x1.FFFFFEp127 * 0x1.FFFFFEp127);
  StateArray tiny(DType::f32, 16, 0x1p-149);
  EXPECT_EQ(sum_of_squares(DType::f32, tiny.from(0), 16), 0x1p-294);
}

TEST(Dot, NanAndInfinityShow) {
  StateArray x = numbers(DType::bf16, 400, 5);
  x.set(399, -INFINITY);
  EXPECT_EQ(sum_of_squares(DType::bf16, x.from(0), 400), INFINITY);
  x.set(7, std::nan("1"));
  for (const double value : {sum_of_squares(DType::bf16, x.from(0), 400), dot(DType::bf16, x.from(0), x.from(0), 400)})
    EXPECT_EQ(std::bit_cast<std::uint64_t>(value), 0x7FF8'0000'0000'0000u);
}

TEST(Dot, RefusesBadInput) {
  float x[4] = {};
  EXPECT_THROW(dot(DType::f32, nullptr, x, 4), std::invalid_argument);
  EXPECT_THROW(dot(DType::f32, x, nullptr, 4), std::invalid_argument);
  EXPECT_THROW(sum_of_squares(DType::f32, nullptr, 1), std::invalid_argument);
  EXPECT_THROW(dot(DType::i32, x, x, 4), std::invalid_argument);
  EXPECT_THROW(sum_of_squares(DType::f64, x, 1), std::invalid_argument);
  EXPECT_THROW(sum_of_squares(DType::f32, x, std::size_t{1} << 62), std::invalid_argument);
  EXPECT_THROW(sum_of_squares(DType::f32, x, 4, -1), std::invalid_argument);
  EXPECT_EQ(dot(DType::f32, nullptr, nullptr, 0), 0);
}

TEST(Clip, FactorIsAtMostOne) {
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_EQ(clip_factor(3, 1), 1 / (3 + 1e-6));
  EXPECT_EQ(clip_factor(4, 1, 0), 0.25);
  EXPECT_EQ(clip_factor(0, 0, 0), 1);
  EXPECT_EQ(clip_factor(5, 0), 0);
  EXPECT_EQ(clip_factor(INFINITY, 1), 0);
  EXPECT_EQ(clip_factor(INFINITY, INFINITY), 1);
  EXPECT_TRUE(std::isnan(clip_factor(NAN, 1)));
  for (const double bad : {-1.0, static_cast<double>(NAN)})
    EXPECT_THROW(clip_factor(1, bad), std::invalid_argument) << bad;
  EXPECT_THROW(clip_factor(-1, 1), std::invalid_argument);
  EXPECT_THROW(clip_factor(1, 1, -1), std::invalid_argument);
  EXPECT_THROW(clip_factor(1, 1, INFINITY), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::kernels
