// Activations, and the functions that they are made of, against double; gradients against differences.
#include <bit>
#include <limits>
#include <stdexcept>

#include "kernels/layers/activation.h"
#include "kernels/layers/elementary.h"
#include "tests/kernels/layers.h"

namespace trellis::kernels {
namespace {

// Checks every 4099th float, of both signs.
template <class Check>
void each_float(const Check& check) {
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 4099) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!std::isnan(x)) check(x);
  }
}

// Whether got is within so many u of wanted, plus half of the smallest subnormal.
bool near(double got, double wanted, double roundings) {
  if (got == wanted) return true;
  return std::fabs(got - wanted) <= roundings * u * std::fabs(wanted) + 0x1p-149;
}

TEST(Elementary, ExponentialIsWithinItsBound) {
  each_float([](float x) {
    const double wanted = std::exp(static_cast<double>(x));
    if (wanted < 0x1p128 * (1 - 0x1p-25)) {
      ASSERT_TRUE(near(exponential(x), wanted, 2.2)) << x;
    } else if (wanted > 0x1p128 * (1 + 0x1p-22)) {
      ASSERT_EQ(exponential(x), INFINITY) << x;
    }
  });
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(-INFINITY), 0);
  EXPECT_TRUE(std::isnan(exponential(NAN)));
}

TEST(Elementary, SigmoidAndItsRestAreWithinTheirBound) {
  each_float([](float x) {
    const double e = std::exp(-std::fabs(static_cast<double>(x)));
    const Sigmoid s = sigmoid(x);
    ASSERT_TRUE(near(x < 0 ? s.rest : s.value, 1 / (1 + e), 5)) << x;
    ASSERT_TRUE(near(x < 0 ? s.value : s.rest, e / (1 + e), 5)) << x;
  });
  EXPECT_TRUE(std::isnan(sigmoid(NAN).value));
}

TEST(Elementary, NormalIsWithinItsBound) {
  each_float([](float x) {
    const NormalCdfPdf n = normal(x);
    ASSERT_TRUE(near(n.below, std::erfc(-x / std::sqrt(2.0)) / 2, 8)) << x;
    ASSERT_TRUE(near(n.density, std::exp(-0.5 * x * static_cast<double>(x)) / std::sqrt(2 * std::acos(-1.0)), 8)) << x;
  });
  EXPECT_TRUE(std::isnan(normal(NAN).below));
}

double inner(double x) { return 2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x); }

double wanted_at(Activation a, double x) {
  if (a == Activation::gelu_erf) return x * std::erfc(-x / std::sqrt(2.0)) / 2;
  return x / (1 + std::exp(-(a == Activation::silu ? x : inner(x))));
}

double slope_at(Activation a, double x) {
  return slopes({x}, [a](const std::vector<double>& at) { return wanted_at(a, at[0]); })[0];
}

// Roundings in units of u: those of the function that it uses, a few more, and for gelu_tanh three that e^-2u
// magnifies.
double roundings(Activation a, double x) {
  if (a == Activation::silu) return 5 + 1;
  if (a == Activation::gelu_erf) return 8 + 1;
  return 5 + 1 + 4 * std::fabs(inner(x));
}

constexpr Activation activations[] = {Activation::silu, Activation::gelu_erf, Activation::gelu_tanh};

Array spread(DType type) {  // from -20 to 20, closer around 0
  Array x(type, 4001);
  for (std::size_t i = 0; i < x.size(); ++i) x.set(i, std::pow((static_cast<double>(i) - 2000) / 2000, 3) * 20);
  return x;
}

TEST(Activations, AreWithinTheirBounds) {
  for (const DType type : layer_types)
    for (const Activation a : activations) {
      const Array x = spread(type);
      Array y(type, x.size());
      activate(a, type, x.data(), y.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double wanted = wanted_at(a, x[i]);
        ASSERT_TRUE(close(y, i, wanted, roundings(a, x[i]) * u * std::fabs(wanted) + 20 * 0x1p-148))
            << name(a) << " " << x[i];
      }
    }
}

TEST(Activations, GradientsAreTheSlopes) {
  for (const DType type : layer_types)
    for (const Activation a : activations) {
      const Array x = spread(type), dy(type, x.size(), 8);
      Array dx(type, x.size());
      activate_gradient(a, type, dy.data(), x.data(), dx.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        // A slope is a sum of terms of at most 1 + |x|, which may cancel.
        const double terms = a == Activation::silu ? 8 + 8 * std::fabs(x[i]) * std::exp(-std::fabs(x[i])) : 40;
        ASSERT_TRUE(close(dx, i, dy[i] * slope_at(a, x[i]), std::fabs(dy[i]) * (terms * u + difference_error * 10)))
            << name(a) << " " << x[i];
      }
    }
}

TEST(Activations, SwigluAndItsGradient) {
  for (const DType type : layer_types) {
    const Array gate = spread(type), up(type, gate.size(), 2, 2), dy(type, gate.size(), 3);
    const std::size_t n = gate.size();
    Array y(type, n), dgate(type, n), dup(type, n);
    swiglu(type, gate.data(), up.data(), y.data(), n, 2);
    swiglu_gradient(type, dy.data(), gate.data(), up.data(), dgate.data(), dup.data(), n, 2);
    for (std::size_t i = 0; i < n; ++i) {
      const double value = wanted_at(Activation::silu, gate[i]), slope = slope_at(Activation::silu, gate[i]);
      ASSERT_TRUE(close(y, i, value * up[i], 8 * u * std::fabs(value * up[i]) + 0x1p-140));
      ASSERT_TRUE(close(dup, i, value * dy[i], 8 * u * std::fabs(value * dy[i]) + 0x1p-140));
      ASSERT_TRUE(close(dgate, i, slope * up[i] * dy[i], std::fabs(up[i] * dy[i]) * (13 * u + difference_error * 10)));
    }
  }
}

TEST(Activations, EndsOfTheRange) {
  const float inf = INFINITY, big = std::numeric_limits<float>::max();
  for (const Activation a : activations) {
    const std::vector<float> x{-inf, -big, -200, inf, big, 200, 0, NAN}, dy(8, 2);
    std::vector<float> y(8), dx(8);
    activate(a, DType::f32, x.data(), y.data(), 8);
    activate_gradient(a, DType::f32, dy.data(), x.data(), dx.data(), 8);
    for (const std::size_t i : {0, 1, 2, 6}) EXPECT_EQ(y[i], 0) << name(a) << x[i];
    for (const std::size_t i : {3, 4, 5}) EXPECT_EQ(y[i], x[i]) << name(a);
    for (const std::size_t i : {0, 1, 2}) EXPECT_EQ(dx[i], 0) << name(a) << x[i];
    for (const std::size_t i : {3, 4, 5}) EXPECT_EQ(dx[i], 2) << name(a) << x[i];
    EXPECT_EQ(dx[6], 1);
    EXPECT_TRUE(std::isnan(y[7]) && std::isnan(dx[7]));
  }
}

TEST(Activations, SayWhatIsWrong) {
  std::vector<float> x(4), y(4);
  EXPECT_THROW(activate(Activation::silu, DType::f16, x.data(), y.data(), 4), std::invalid_argument);
  EXPECT_THROW(activate(Activation::silu, DType::f32, nullptr, y.data(), 4), std::invalid_argument);
  EXPECT_THROW(activate(Activation::silu, DType::f32, x.data(), x.data() + 1, 3), std::invalid_argument);
  EXPECT_THROW(activate(Activation::silu, DType::f32, x.data(), y.data(), 4, -1), std::invalid_argument);
  EXPECT_THROW(swiglu_gradient(DType::f32, x.data(), x.data(), x.data(), y.data(), y.data(), 4), std::invalid_argument);
  EXPECT_THROW(swiglu(DType::f32, x.data(), x.data(), y.data(), std::size_t{1} << 62), std::invalid_argument);
  EXPECT_NO_THROW(activate(Activation::silu, DType::f32, x.data(), x.data(), 4));
  EXPECT_NO_THROW(swiglu(DType::bf16, nullptr, nullptr, nullptr, 0));
}

}  // namespace
}  // namespace trellis::kernels
