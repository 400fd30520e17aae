// e^x and what activations need of it, in f32 operations that vectors of any width repeat bit for bit: polynomials of
// our own, because a libm's results differ from one version to the next and have no twin.
#pragma once

#include <array>
#include <cstdint>

namespace trellis::kernels {

// e^(x + rest), rest being a small correction to x: x = n ln 2 + r with |r| <= 0.35, e^r = 1 + r + r^2 P(r).
// The relative error is at most 2.2 * 2^-24: 0.35/0.7 for r, 0.42/0.7 for r + r^2 P, 1 for the last sum, 0.1 for P and
// the rest; 1.4 was measured over every third float. Results below 2^-126 are rounded once more; NaN stays.
float exponential(float x, float rest = 0);

struct ExponentialConstants {
  static constexpr float least = -104, most = 89;  // beyond: 0 and infinity
  static constexpr float log2_e = 0x1.715476p+0F;
  static constexpr float to_integer = 0x1.8p+23F;  // added, it rounds a small number to an integer in the lowest bits
  static constexpr float ln2_high = 0x1.62e4p-1F;  // n times it is exact
  static constexpr float ln2_low = 0x1.7f7d1cp-20F;
  static constexpr std::array<float, 5> p = {0x1.fffffcp-2F, 0x1.555492p-3F, 0x1.5558f2p-5F, 0x1.123a20p-7F,
                                             0x1.6a23ccp-10F};
};

// 1 / (1 + e^-x) and 1 minus it, each with full relative accuracy: at most 5 * 2^-24, 3 measured.
struct Sigmoid {
  float value, rest;
};
Sigmoid sigmoid(float x);

// The standard normal distribution: the probability of less than x, and the density at x. The probability of less than
// -a is e^(-a^2/2) t Q(t) with t = 1 / (1 + 0.35 a); the relative error was measured to be at most 7.4 * 2^-24 over
// every third float, down to 2^-126. a^2 is split in two so that its rounding is not magnified.
struct NormalCdfPdf {
  float below, density;
};
NormalCdfPdf normal(float x);

struct NormalTailConstants {
  static constexpr float most = 15;  // beyond it the tail is 0
  static constexpr float slope = 0.35F;
  static constexpr std::uint32_t head_bits = 0xFFFF'F000;  // masks a number to so few bits that its square is exact
  static constexpr float peak = 0x1.988454p-2F;            // 1 / sqrt(2 pi)
  static constexpr std::array<float, 9> q = {0x1.1df1c0p-3F,  0x1.1e713ap-3F,  0x1.eac324p-4F,
                                             0x1.b07126p-4F,  -0x1.7d394cp-6F, 0x1.4672e6p-3F,
                                             -0x1.060c74p-2F, 0x1.270a94p-3F,  -0x1.ddd456p-6F};
};

}  // namespace trellis::kernels
