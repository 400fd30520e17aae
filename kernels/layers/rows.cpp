#include "kernels/layers/rows.h"

#include <limits>

#include "kernels/dispatch/parallel.h"
#include "kernels/types/check_arguments.h"
#include "kernels/types/convert.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

constexpr std::size_t columns_of_a_part = 64;

}  // namespace

void run_rows(std::string_view name, const RowKernelArguments& whole, int threads) {
  const auto found = row_kernels().find(name);
  if (found == row_kernels().end()) text::refuse("no kernel over rows is called '{}'", name);
  const RowBody body = found->second.chosen();
  const std::size_t unit = found->second.by_columns ? columns_of_a_part : 1;
  const std::size_t length = found->second.by_columns ? whole.columns : whole.rows;
  parallel(threads, length / unit + (length % unit != 0), [&](std::size_t from, std::size_t to) {
    RowKernelArguments share = whole;
    share.from = from * unit;
    share.to = to * unit < length ? to * unit : length;
    body(share);
  });
}

std::size_t check_table(std::string_view kernel, DType type, std::size_t rows, std::size_t columns) {
  if (type != DType::f32 && type != DType::bf16)
    text::refuse("{}: {} is not supported; f32 and bf16 are", kernel, name(type));
  if (rows != 0 && columns == 0) text::refuse("{}: {} rows of 0 columns", kernel, rows);
  if (columns != 0 && rows > std::numeric_limits<std::size_t>::max() / columns)
    text::refuse("{}: {} rows of {} columns are more than memory can hold", kernel, rows, columns);
  bytes_of(kernel, rows * columns, size_of(type));
  return rows * columns;
}

float element(DType type, const void* array, std::size_t i) {
  return static_cast<float>(load(type, static_cast<const std::byte*>(array) + i * size_of(type)));
}

void put_element(DType type, void* array, std::size_t i, float value) {
  if (value != value) value = std::numeric_limits<float>::quiet_NaN();
  store(type, static_cast<std::byte*>(array) + i * size_of(type), static_cast<double>(value));
}

}  // namespace trellis::kernels
