// Kernels over tables: rows of columns, and operands of one element a row or one a column. By name, with their truth
// and twins, as registry.h has the elementwise ones.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dispatch/registry.h"

namespace trellis::kernels {

// What one call of a body works on: rows (of a kernel by columns: columns) from `from` up to `to` of whole operands.
struct Rows {
  std::size_t rows = 0, columns = 0;
  std::size_t from = 0, to = 0;
  void* const* writes = nullptr;
  const void* const* reads = nullptr;
  const void* settings = nullptr;
};
using RowBody = void (*)(const Rows&);

enum class Extent : std::uint8_t { table, row, column };  // rows x columns elements, one a row, one a column

struct RowOperand {
  DType type;
  Extent extent;
};

struct RowKernel {
  std::string name = {};  // "rms_norm.bf16"
  std::vector<RowOperand> reads = {};
  std::vector<RowOperand> writes = {};
  bool by_columns = false;         // sums over rows, for each column
  const void* settings = nullptr;  // a sample, for tests and timings
  RowBody truth = nullptr;
  std::array<RowBody, isa_count> twins = {};

  RowBody chosen() const;                // for this CPU
  std::string_view chosen_name() const;  // "avx512", ..., "truth"
};

struct RowTwin {
  Name name;
  RowBody body;
};

// Defining one at namespace scope registers kernels, or their twins; a table of twins must be constexpr.
struct RegisteredRows {
  explicit RegisteredRows(std::vector<RowKernel> (*make)());
  RegisteredRows(Isa, const RowTwin* twins, std::size_t count);
  template <std::size_t count>
  RegisteredRows(Isa isa, const std::array<RowTwin, count>& twins) : RegisteredRows(isa, twins.data(), count) {}
};

const std::map<std::string, RowKernel, std::less<>>& row_kernels();

// The chosen body over all rows (or columns), shared among threads. No result depends on how many: a row is the work of
// one thread, and so is a column.
void run_rows(std::string_view kernel, const Rows&, int threads);

// The one order of sums along a row, for any vector width: element i is added to sum i % row_sums, then the second half
// of the sums to the first, one by one, until one is left.
inline constexpr std::size_t row_sums = 32;

// Sums down a column, in f32: over this many rows at a time, and these sums one after the other.
inline constexpr std::size_t column_run = 256;

// Throws unless the type is f32 or bf16, and rows that there are have columns; returns rows * columns.
std::size_t check_table(std::string_view kernel, DType, std::size_t rows, std::size_t columns);

// Scalar access of the truths: elements of f32 or bf16 as f32, and back with one rounding, NaNs all the positive quiet.
float element(DType, const void* array, std::size_t i);
void put_element(DType, void* array, std::size_t i, float);

}  // namespace trellis::kernels
