// The random bits: known answers, and statistics that a known-bad generator fails. Seeds are fixed, so is the outcome.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "kernels/types/convert.h"
#include "kernels/types/random.h"

namespace trellis::kernels {
namespace {

// 16 bits for (seed, step, element).
using Generator = std::function<std::uint32_t(std::uint64_t, std::uint64_t, std::uint64_t)>;

constexpr double six_sigma = 6;
constexpr std::uint64_t draws = 1 << 20;

RandomKey key_of(std::uint64_t seed, std::uint64_t step) { return random_key({.seed = seed, .step = step}); }

std::uint32_t ours(std::uint64_t seed, std::uint64_t step, std::uint64_t i) { return random16(key_of(seed, step), i); }

std::uint32_t ours32(std::uint64_t seed, std::uint64_t step, std::uint64_t i) {
  return random32(key_of(seed, step), i) >> 16;
}

std::uint32_t reference(std::uint64_t seed, std::uint64_t step, std::uint64_t i) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const Block b = philox<10>({low(i / 8), low(i / 8 >> 32), low(step), 0}, {low(seed), low(seed >> 32)});
  return b[i / 2 % 4] >> (i % 2 * 16) & 0xFFFF;
}

// A good mixer of 32 bits, fed with the index xor the seed: a seed only permutes the same counters.
std::uint32_t bad(std::uint64_t seed, std::uint64_t step, std::uint64_t i) {
  auto x = static_cast<std::uint32_t>(i ^ seed ^ step);
  x = (x ^ (x >> 16)) * 0x85EBCA6B;
  x = (x ^ (x >> 13)) * 0xC2B2AE35;
  return (x ^ (x >> 16)) & 0xFFFF;
}

// How far a chi-square of that many degrees of freedom is from its mean, in standard deviations.
double deviation(double chi_square, double degrees) { return (chi_square - degrees) / std::sqrt(2 * degrees); }

// Largest deviation of the count of each value of the low `bits` bits, over a few seeds and steps.
double low_bits(const Generator& g, int bits) {
  double worst = 0;
  for (std::uint64_t seed : {1, 2, 12345}) {
    std::vector<double> counts(std::size_t{1} << bits);
    for (std::uint64_t i = 0; i < draws; ++i) ++counts[g(seed, 7, i) & (counts.size() - 1)];
    const double expected = static_cast<double>(draws) / static_cast<double>(counts.size());
    double sum = 0;
    for (double c : counts) sum += (c - expected) * (c - expected) / expected;
    worst = std::max(worst, std::fabs(deviation(sum, static_cast<double>(counts.size() - 1))));
  }
  return worst;
}

// The largest deviation from 0, over the 16 bits, of the correlation between two series of draws.
double correlation(const std::function<std::uint32_t(std::uint64_t)>& a,
                   const std::function<std::uint32_t(std::uint64_t)>& b) {
  std::array<double, 16> differ{};
  for (std::uint64_t i = 0; i < draws; ++i) {
    const std::uint32_t x = a(i) ^ b(i);
    for (int bit = 0; bit < 16; ++bit) differ[bit] += x >> bit & 1;
  }
  double worst = 0;
  for (double d : differ) worst = std::max(worst, std::fabs(d - draws / 2.0) / std::sqrt(draws / 4.0));
  return worst;
}

double neighbours(const Generator& g) {
  double worst = 0;
  for (std::uint64_t lag : {1, 2, 8, 16, 32, 64, 128, 512, 1024})
    worst = std::max(worst, correlation([&](std::uint64_t i) { return g(9, 1, i); },
                                        [&](std::uint64_t i) { return g(9, 1, i + lag); }));
  return worst;
}

double steps(const Generator& g) {
  return correlation([&](std::uint64_t i) { return g(9, 1, i); }, [&](std::uint64_t i) { return g(9, 2, i); });
}

double seeds(const Generator& g) {
  return std::max(
      correlation([&](std::uint64_t i) { return g(9, 1, i); }, [&](std::uint64_t i) { return g(10, 1, i); }),
      correlation([&](std::uint64_t i) { return g(1ULL << 40, 1, i); }, [&](std::uint64_t i) { return g(0, 1, i); }));
}

// Sums over many seeds must scatter as independent draws do, neither more nor less.
double scatter(const Generator& g) {
  constexpr int many = 128;
  constexpr std::uint64_t each = 1 << 13;
  constexpr std::uint32_t residual = 0x5678;
  constexpr double p = residual / 65536.0;
  std::vector<double> ups(many);
  double mean = 0, sum = 0;
  for (std::uint64_t seed = 0; seed < many; ++seed) {
    for (std::uint64_t i = 0; i < each; ++i) ups[seed] += (g(seed, 3, i) + residual) >> 16;
    mean += ups[seed] / many;
  }
  for (double u : ups) sum += (u - mean) * (u - mean) / (each * p * (1 - p));
  return std::fabs(deviation(sum, many - 1));
}

struct Case {
  const char* name;
  Generator generator;
};

class Quality : public testing::TestWithParam<Case> {};
TEST_P(Quality, LowBits) {
  for (int bits : {1, 4, 8, 12}) EXPECT_LT(low_bits(GetParam().generator, bits), six_sigma) << bits;
}
TEST_P(Quality, Neighbours) { EXPECT_LT(neighbours(GetParam().generator), six_sigma); }
TEST_P(Quality, Steps) { EXPECT_LT(steps(GetParam().generator), six_sigma); }
TEST_P(Quality, Seeds) { EXPECT_LT(seeds(GetParam().generator), six_sigma); }
TEST_P(Quality, Scatter) { EXPECT_LT(scatter(GetParam().generator), six_sigma); }
INSTANTIATE_TEST_SUITE_P(Generators, Quality,
                         testing::Values(Case{"ours", ours}, Case{"ours32", ours32}, Case{"philox", reference}),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(KnownBad, IsCaught) {
  EXPECT_GT(seeds(bad), six_sigma);
  EXPECT_GT(scatter(bad), six_sigma);
}

TEST(Philox, KnownAnswers) {
  EXPECT_EQ((Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}), philox<10>({}, {}));
  EXPECT_EQ((Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}), philox<10>({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}));
  EXPECT_EQ((Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}),
            philox<10>({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}));
  EXPECT_EQ((Block{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}), philox<7>({}, {}));
}

// These bits must never change: checkpoints were trained with them.
TEST(RandomBits, KnownAnswers) {
  constexpr RandomKey key = random_key({.seed = 1, .step = 2, .tensor = 3});
  struct Answer {
    std::uint64_t element;
    std::uint32_t all, half;
  };
  for (const Answer& a :
       {Answer{0, 0x1e1fe988, 0xe988}, Answer{1, 0xc635e826, 0xe826}, Answer{15, 0x6993134d, 0x134d},
        Answer{16, 0x4fbc5f5d, 0x1e1f}, Answer{31, 0x25e1fb0f, 0x6993}, Answer{32, 0x9c97b3af, 0x5f5d},
        Answer{1023, 0x10799e78, 0x945a}, Answer{1024, 0x7d501276, 0x3985},
        Answer{(std::uint64_t{1} << 40) + 17, 0xa1372715, 0xf0f2}}) {
    EXPECT_EQ(random32(key, a.element), a.all) << a.element;
    EXPECT_EQ(random16(key, a.element), a.half) << a.element;
  }
}

// For each exponent: the mean of the rounded values equals the value, within six standard errors.
TEST(StochasticRounding, IsUnbiasedInEveryExponent) {
  constexpr std::uint64_t many = 1 << 14;
  double worst = 0, squares = 0;
  int classes = 0;
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent)
    for (std::uint32_t low : {0x0001U, 0x1000U, 0x7FFFU, 0x8000U, 0xC003U}) {
      const RandomKey key = random_key({.seed = 4, .step = exponent, .tensor = low});
      const std::uint32_t u = exponent << 23 | 0x15'0000 | low;
      double ups = 0;
      for (std::uint64_t i = 0; i < many; ++i)
        ups += bf16_stochastic(std::bit_cast<float>(u), random16(key, i)) != u >> 16;
      const double p = low / 65536.0;
      const double z = (ups - many * p) / std::sqrt(many * p * (1 - p));
      if (low > 1) worst = std::max(worst, std::fabs(z)), squares += z * z, ++classes;
    }
  EXPECT_LT(worst, six_sigma);
  EXPECT_LT(std::fabs(deviation(squares, classes)), six_sigma);
}

// Adds 4096 steps of 2^-12 to 1: rounded to nearest the sum never moves; stochastically it arrives at 2.
TEST(StochasticRounding, SmallStepsArrive) {
  double mean = 0;
  constexpr int trials = 200;
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    std::uint16_t nearest = bf16_nearest(1), sum = nearest;
    for (std::uint64_t i = 0; i < 4096; ++i) {
      nearest = bf16_nearest(widen_bf16(nearest) + 0x1p-12F);
      sum = bf16_stochastic(widen_bf16(sum) + 0x1p-12F, random16(key_of(trial, i), 0));
    }
    EXPECT_EQ(1.0F, widen_bf16(nearest));
    mean += widen_bf16(sum) / double{trials};
  }
  EXPECT_NEAR(2.0, mean, 6 * 0.09 / std::sqrt(trials));
}

// Adds a half 2048 times to 1024 in f16, the example of Trainium's documentation.
TEST(StochasticRounding, HalvesAddUpInF16) {
  std::uint16_t nearest = 0x6400, sum = nearest;
  for (std::uint64_t i = 0; i < 2048; ++i) {
    nearest = static_cast<std::uint16_t>(encode(f16_format, decode(f16_format, nearest) + 0.5, Rounding::nearest));
    sum = static_cast<std::uint16_t>(
        encode(f16_format, decode(f16_format, sum) + 0.5, Rounding::stochastic, random32(key_of(1, i), 0), 32));
  }
  EXPECT_EQ(1024, decode(f16_format, nearest));
  EXPECT_NEAR(2048, decode(f16_format, sum), 6 * 22.7);
}

}  // namespace
}  // namespace trellis::kernels
