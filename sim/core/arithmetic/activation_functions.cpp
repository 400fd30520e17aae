#include "sim/core/arithmetic/activation_functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "kernels/lanes/elementary_lanes.h"
#include "kernels/layers/activation.h"

namespace trellis::sim::core {
namespace {

namespace vectors = kernels::TRELLIS_ISA;
using Lanes = vectors::F;
constexpr auto width = static_cast<std::size_t>(vectors::lanes);

template <class F>
void in_vectors(const float* x, float* y, std::size_t n, F f) {
  std::size_t i = 0;
  for (; i + width <= n; i += width) {
    Lanes v;
    std::memcpy(&v, x + i, sizeof v);
    v = f(v);
    std::memcpy(y + i, &v, sizeof v);
  }
  if (i == n) return;
  Lanes v{};
  std::memcpy(&v, x + i, (n - i) * sizeof(float));
  v = f(v);
  std::memcpy(y + i, &v, (n - i) * sizeof(float));
}

template <class F>
void each(const float* __restrict x, float* __restrict y, std::size_t n, F f) {
  for (std::size_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

template <class F>
void in_f64(const float* x, float* y, std::size_t n, F f) {
  for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<float>(f(static_cast<double>(x[i])));
}

void by_kernel(kernels::Activation a, const float* x, float* y, std::size_t n) {
  kernels::activate(a, kernels::DType::f32, x, y, n);
}

void slope_by_kernel(kernels::Activation a, const float* x, float* y, std::size_t n) {
  const std::vector<float> ones(n, 1.0F);
  kernels::activate_gradient(a, kernels::DType::f32, ones.data(), x, y, n);
}

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double logistic(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

constexpr double gelu_steepness = 1.702;  // steepness of the sigmoid in gelu's approximation

double gelu_apprx_sigmoid_dx(double x) {
  if (std::isinf(x)) return x > 0 ? 1 : 0;
  const double s = logistic(gelu_steepness * x);
  return s + gelu_steepness * x * s * (1 - s);
}

// Computes the functions that are one operation an element, or two; returns false for all others.
bool simple(ActivationFunction f, const float* x, float* y, std::size_t n, float slope) {
  switch (f) {
    case ActivationFunction::copy:
    case ActivationFunction::identity:
      std::copy_n(x, n, y);
      return true;
    case ActivationFunction::square:
      each(x, y, n, [](float v) { return v * v; });
      return true;
    case ActivationFunction::sqrt:
      each(x, y, n, [](float v) { return std::sqrt(v); });
      return true;
    case ActivationFunction::rsqrt:
      each(x, y, n, [](float v) { return 1 / std::sqrt(v); });
      return true;
    case ActivationFunction::abs_reciprocal_sqrt:
      each(x, y, n, [](float v) { return 1 / std::sqrt(std::fabs(v)); });
      return true;
    case ActivationFunction::reciprocal:
      each(x, y, n, [](float v) { return 1 / v; });
      return true;
    case ActivationFunction::relu:
      each(x, y, n, [](float v) { return v < 0 ? 0.0F : v; });
      return true;
    case ActivationFunction::lrelu:
    case ActivationFunction::prelu:
      each(x, y, n, [=](float v) { return v < 0 ? v * slope : v; });
      return true;
    case ActivationFunction::abs:
      each(x, y, n, [](float v) { return std::fabs(v); });
      return true;
    case ActivationFunction::sign:
      each(x, y, n, [](float v) { return static_cast<float>((v > 0) - (v < 0)); });
      return true;
    case ActivationFunction::is_finite:
      each(x, y, n, [](float v) { return std::isfinite(v) ? 1.0F : 0.0F; });
      return true;
    default:
      return false;
  }
}

}  // namespace

void evaluate(ActivationFunction f, const float* x, float* y, std::size_t n, float slope) {
  if (simple(f, x, y, n, slope)) return;
  switch (f) {
    case ActivationFunction::exp:
      return in_vectors(x, y, n, [](Lanes v) { return vectors::exponential_lanes(v); });
    case ActivationFunction::sigmoid:
      return in_vectors(x, y, n, [](Lanes v) { return vectors::sigmoid_lanes(v).value; });
    case ActivationFunction::silu:
      return by_kernel(kernels::Activation::silu, x, y, n);
    case ActivationFunction::silu_dx:
      return slope_by_kernel(kernels::Activation::silu, x, y, n);
    case ActivationFunction::gelu:
      return by_kernel(kernels::Activation::gelu_erf, x, y, n);
    case ActivationFunction::gelu_dx:
      return slope_by_kernel(kernels::Activation::gelu_erf, x, y, n);
    case ActivationFunction::gelu_apprx_tanh:
      return by_kernel(kernels::Activation::gelu_tanh, x, y, n);
    case ActivationFunction::log:
      return in_f64(x, y, n, [](double v) { return std::log(v); });
    case ActivationFunction::ln1p:
      return in_f64(x, y, n, [](double v) { return std::log1p(v); });
    case ActivationFunction::tanh:
      return in_f64(x, y, n, [](double v) { return std::tanh(v); });
    case ActivationFunction::tanh_dx:
      return in_f64(x, y, n, [](double v) { return 1 / (std::cosh(v) * std::cosh(v)); });
    case ActivationFunction::sigmoid_dx:
      return in_f64(x, y, n, [](double v) { return logistic(v) * logistic(-v); });
    case ActivationFunction::softplus:
      return in_f64(x, y, n, softplus);
    case ActivationFunction::mish:
      return in_f64(x, y, n, [](double v) { return std::isinf(v) && v < 0 ? -0.0 : v * std::tanh(softplus(v)); });
    case ActivationFunction::gelu_apprx_sigmoid:
      return in_f64(x, y, n, [](double v) { return std::isinf(v) && v < 0 ? -0.0 : v * logistic(gelu_steepness * v); });
    case ActivationFunction::gelu_apprx_sigmoid_dx:
      return in_f64(x, y, n, gelu_apprx_sigmoid_dx);
    case ActivationFunction::erf:
      return in_f64(x, y, n, [](double v) { return std::erf(v); });
    case ActivationFunction::erf_dx:
      return in_f64(x, y, n, [](double v) { return 2 * std::numbers::inv_sqrtpi * std::exp(-v * v); });
    case ActivationFunction::sin:
      return in_f64(x, y, n, [](double v) { return std::sin(v); });
    case ActivationFunction::arctan:
      return in_f64(x, y, n, [](double v) { return std::atan(v); });
    default:
      return;
  }
}

}  // namespace trellis::sim::core
