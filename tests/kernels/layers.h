// What the tests of layers share: arrays of f32 or bf16 seen as doubles, bounds, and derivatives by differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "kernels/types/convert.h"
#include "kernels/types/random.h"

namespace trellis::kernels {

inline constexpr double u = 0x1p-24;  // the relative size of one rounding to f32
inline constexpr DType layer_types[] = {DType::f32, DType::bf16};

struct Array {
  DType type;
  std::vector<std::byte> bytes;

  Array(DType t, std::size_t n) : type(t), bytes(n * size_of(t)) {}
  // Values uniform in [-size, size], plus a shift.
  Array(DType t, std::size_t n, std::uint64_t seed, double size = 1, double shift = 0) : Array(t, n) {
    const RandomKey key = random_key({.seed = seed});
    for (std::size_t i = 0; i < n; ++i) set(i, (random32(key, i) * 0x1p-31 - 1) * size + shift);
  }
  std::size_t size() const { return bytes.size() / size_of(type); }
  void set(std::size_t i, double v) { store(type, bytes.data() + i * size_of(type), v); }
  double operator[](std::size_t i) const { return load(type, bytes.data() + i * size_of(type)); }
  void* data() { return bytes.data(); }
  const void* data() const { return bytes.data(); }
  std::vector<double> values() const {
    std::vector<double> all(size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = (*this)[i];
    return all;
  }
};

inline double rounded(DType type, double v) {
  std::byte at[8];
  store(type, at, v);
  return load(type, at);
}

// Before its rounding to the array's type, which is monotonic, the value was within `slack` of `wanted`.
inline testing::AssertionResult close(const Array& a, std::size_t i, double wanted, double slack) {
  const double got = a[i];
  if (got >= rounded(a.type, wanted - slack) && got <= rounded(a.type, wanted + slack))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << name(a.type) << " element " << i << " is " << got << ", wanted " << wanted
                                     << " +- " << slack << " (off by " << std::fabs(got - wanted) / u << " u)";
}

// The derivative of f by each of the values, by central differences.
inline std::vector<double> slopes(std::vector<double> at, const std::function<double(const std::vector<double>&)>& f,
                                  double step = 1e-5) {
  std::vector<double> all(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double middle = at[i];
    at[i] = middle + step;
    const double up = f(at);
    at[i] = middle - step;
    all[i] = (up - f(at)) / (2 * step);
    at[i] = middle;
  }
  return all;
}

// The error of such differences, for values near 1 and the default step.
inline constexpr double difference_error = 2e-9;

inline double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace trellis::kernels
