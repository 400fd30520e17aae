// Compares results with references, each within an error bound of its own.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "kernels/types/convert.h"
#include "sim/core/programs/shipped_programs.h"

namespace trellis::sim::core {

inline constexpr double unit_f32 = 0x1p-24;  // half a unit in the last place of 1, in f32
inline constexpr double unit_bf16 = 0x1p-8;  // in bf16

inline double rounding_of(DType type) { return type == DType::bf16 ? unit_bf16 : unit_f32; }

// A reference, and the error allowed before the last rounding to the type that stores it.
struct BoundedReference {
  double value = 0;
  double bound = 0;
};

inline Comparison compare_bounded(std::string_view what, DType type, const void* got,
                                  const std::vector<BoundedReference>& truth) {
  Comparison c{.what = std::string(what), .elements = truth.size()};
  const std::size_t size = kernels::size_of(type);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double is = kernels::load(type, static_cast<const std::byte*>(got) + i * size);
    const double bound = truth[i].bound + rounding_of(type) * (std::abs(truth[i].value) + truth[i].bound);
    const double distance = std::abs(is - truth[i].value);
    if (!(distance <= bound)) ++c.wrong;
    if (distance > c.worst || c.bound == 0 || std::isnan(distance)) {
      c.worst = distance;
      c.bound = bound;
    }
  }
  return c;
}

// A buffer of HBM as numbers.
inline std::vector<double> numbers_of(CoreMemory& memory, std::string_view buffer, DType type) {
  const std::span<const std::byte> bytes = memory.hbm(buffer);
  std::vector<double> numbers(bytes.size() / kernels::size_of(type));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = kernels::load(type, bytes.data() + i * kernels::size_of(type));
  return numbers;
}

inline std::vector<float> floats_of(CoreMemory& memory, std::string_view buffer, DType type) {
  const std::vector<double> numbers = numbers_of(memory, buffer, type);
  return {numbers.begin(), numbers.end()};
}

}  // namespace trellis::sim::core
