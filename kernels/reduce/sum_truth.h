// Sums over all elements in the one order that dot.h defines.
#pragma once

#include <array>
#include <limits>
#include <span>

#include "kernels/dispatch/parallel.h"
#include "kernels/reduce/dot.h"
#include "kernels/types/check_arguments.h"
#include "kernels/types/convert.h"

namespace trellis::kernels {

inline double wide_at(DType d, const void* array, std::size_t i) {
  return load(d, static_cast<const std::byte*>(array) + i * size_of(d));
}

// The truth of a kernel that sums: terms(i, out) puts the terms of element i, one for each written operand, into out.
template <class Terms>
void sum_parts(const KernelArguments& s, std::size_t operands, const Terms& terms) {
  for (std::size_t part = 0; part < parts_of(s.n); ++part) {
    std::array<std::array<double, dot_sums>, 2> sums{};
    const std::size_t begin = part * part_elements, end = s.n - begin < part_elements ? s.n : begin + part_elements;
    for (std::size_t i = begin; i < end; ++i) {
      double out[2];
      terms(i, out);
      for (std::size_t k = 0; k < operands; ++k) sums[k][i % dot_sums] += out[k];
    }
    for (std::size_t k = 0; k < operands; ++k) {
      for (std::size_t width = dot_sums / 2; width > 0; width /= 2)
        for (std::size_t j = 0; j < width; ++j) sums[k][j] += sums[k][j + width];
      const double sum = sums[k][0] != sums[k][0] ? std::numeric_limits<double>::quiet_NaN() : sums[k][0];
      store(DType::f64, static_cast<std::byte*>(s.writes[k]) + part * sizeof(double), sum);
    }
  }
}

// Adds the parts' sums in order; any NaN becomes the one quiet positive NaN.
inline double added_up(std::span<const double> parts) {
  double sum = 0;
  for (double part : parts) sum += part;
  return sum != sum ? std::numeric_limits<double>::quiet_NaN() : sum;
}

}  // namespace trellis::kernels
