// What kernels over rows share: running them, their order of sums, checks of their arguments, access to elements.
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/dispatch/registry.h"

namespace trellis::kernels {

// Runs the chosen body over all rows (or columns), shared among threads. No result depends on the number of threads: a
// row is the work of one thread, and so is a column.
void run_rows(std::string_view kernel, const RowKernelArguments&, int threads);

// The one order of sums along a row, for any vector width: element i is added to sum i % row_sums, then the second half
// of the sums to the first, one by one, until one is left.
inline constexpr std::size_t row_sums = 32;

// Sums down a column are in f32: each run of this many rows is summed, and the runs' sums are added one after the
// other.
inline constexpr std::size_t column_run = 256;

// Throws if the type is neither f32 nor bf16, or if there are rows but no columns. Returns rows * columns.
std::size_t check_table(std::string_view kernel, DType, std::size_t rows, std::size_t columns);

// Element access for truths: f32 or bf16 as f32, and back with one rounding; any NaN becomes the positive quiet one.
float element(DType, const void* array, std::size_t i);
void put_element(DType, void* array, std::size_t i, float);

}  // namespace trellis::kernels
