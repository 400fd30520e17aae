// What the truths of kernels over rows share: the order of sums, spelled out.
#pragma once

#include <array>

#include "kernels/layers/rows.h"

namespace trellis::kernels {

// Joins term(0) to term(n - 1) by `join`, in the order of row_sums. `start` is join's neutral element.
template <class Term, class Join>
float along_row(std::size_t n, float start, const Term& term, const Join& join) {
  std::array<float, row_sums> sums;
  sums.fill(start);
  for (std::size_t i = 0; i < n; ++i) sums[i % row_sums] = join(sums[i % row_sums], term(i));
  for (std::size_t width = row_sums / 2; width > 0; width /= 2)
    for (std::size_t j = 0; j < width; ++j) sums[j] = join(sums[j], sums[j + width]);
  return sums[0];
}

template <class Term>
float row_sum(std::size_t n, const Term& term) {
  return along_row(n, 0, term, [](float a, float b) { return a + b; });
}

// Sum of term(row) over all rows.
template <class Term>
float column_sum(std::size_t rows, const Term& term) {
  float total = 0;
  for (std::size_t row = 0; row < rows;) {
    float sum = 0;
    for (const std::size_t end = rows - row < column_run ? rows : row + column_run; row < end; ++row) sum += term(row);
    total += sum;
  }
  return total;
}

}  // namespace trellis::kernels
