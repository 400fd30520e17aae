// A tensor with its gradient and state, of any WeightStorage and types, for the optimizers' tests.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/optimizers/parameter.h"
#include "kernels/types/convert.h"

namespace trellis::kernels {

inline constexpr double unit = 0x1p-24;  // the largest relative error of one f32 operation

struct StateArray {
  DType type;
  std::vector<std::byte> bytes;

  StateArray(DType t, std::size_t n, double value = 0) : type(t), bytes(n * size_of(t)) {
    for (std::size_t i = 0; i < n; ++i) set(i, value);
  }
  double at(std::size_t i) const { return load(type, bytes.data() + i * size_of(type)); }
  void set(std::size_t i, double value) { store(type, bytes.data() + i * size_of(type), value); }
  void* from(std::size_t i) { return bytes.data() + i * size_of(type); }
  bool operator==(const StateArray&) const = default;
};

struct Case {
  WeightStorage keep;
  StateArray gradient, values, copy, rest, first, second;

  Case(WeightStorage k, DType gradient_type, DType moments, std::size_t n)
      : keep(k),
        gradient(gradient_type, n),
        values(type_of(k), n),
        copy(DType::bf16, k == WeightStorage::f32_copy ? n : 0),
        rest(DType::bf16, k == WeightStorage::bf16_kahan ? n : 0),
        first(moments, n),
        second(moments, n) {}

  std::size_t size() const { return gradient.bytes.size() / size_of(gradient.type); }
  Weights weights(std::size_t i = 0) {
    return {.keep = keep,
            .values = values.from(i),
            .copy = copy.bytes.empty() ? nullptr : copy.from(i),
            .rest = rest.bytes.empty() ? nullptr : rest.from(i)};
  }
  Gradient gradients(double scale = 1, std::size_t i = 0) { return {gradient.type, gradient.from(i), scale}; }
  Moments moments(std::size_t i = 0) { return {first.type, first.from(i), second.from(i)}; }
  double kept(std::size_t i) const { return values.at(i) + (keep == WeightStorage::bf16_kahan ? rest.at(i) : 0); }

  // Numbers of very different sizes; second moments not below 0.
  void fill(std::uint64_t seed) {
    std::uint64_t count = 0;
    const auto number = [&](double middle) {
      const std::uint64_t word = random_word({seed, 9}, count++);
      const double fraction = 1 + static_cast<double>(word % 4096) / 4096;
      return std::ldexp(word >> 63 != 0 ? fraction : -fraction, static_cast<int>(word >> 40 & 15) - 8) * middle;
    };
    for (std::size_t i = 0; i < size(); ++i) {
      gradient.set(i, number(1e-2));
      values.set(i, number(1));
      if (keep == WeightStorage::bf16_kahan) rest.set(i, values.at(i) * 0x1p-10);
      first.set(i, number(1e-2));
      second.set(i, std::fabs(number(1e-4)));
    }
  }
  bool operator==(const Case&) const = default;

  // How far a kept value may lie from the value that was to be kept.
  double keeping_error(double value) const {
    if (keep <= WeightStorage::f32_copy) return 0;
    if (keep == WeightStorage::bf16_kahan) return std::fabs(value) * 0x1p-16;
    return std::fabs(value) * (keep == WeightStorage::bf16_nearest ? 0x1p-8 : 0x1p-7);
  }
  double state_error(double value) const { return first.type == DType::bf16 ? std::fabs(value) * 0x1p-7 : 0; }
};

template <class Test>
void for_each_case(const Test& test) {
  for (std::size_t k = 0; k < keep_count; ++k)
    for (DType gradient : {DType::f32, DType::bf16})
      for (DType moments : {DType::f32, DType::bf16}) test(static_cast<WeightStorage>(k), gradient, moments);
}

}  // namespace trellis::kernels
