#include "sim/core/program/tensor_operand.h"

#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

void expect_within(std::string_view what, std::int64_t first, std::int64_t count, std::int64_t have) {
  if (first < 0 || count < 1 || first + count > have)
    text::refuse("{} {} to {} of {}", what, first, first + count - 1, have);
}

// The one dimension of a row; throws if there are several.
Dim& only_dim(View& v, std::string_view verb) {
  if (v.dims != 1) text::refuse("{} of a row of {} dimensions: expected 1", verb, v.dims);
  return v.dim[0];
}

}  // namespace

TensorOperand TensorOperand::row_range(std::int64_t first, std::int64_t count) const {
  expect_within("rows", first, count, view.rows);
  TensorOperand part = *this;
  if (view.row_stride != 0)
    part.view.offset += first * view.row_stride;
  else
    part.view.row += static_cast<std::int32_t>(first);
  part.view.rows = static_cast<std::int32_t>(count);
  return part;
}

TensorOperand TensorOperand::column_range(std::int64_t first, std::int64_t count) const {
  TensorOperand part = *this;
  Dim& dim = only_dim(part.view, "columns");
  expect_within("columns", first, 1, dim.count);
  expect_within("columns", first, count, dim.count);
  part.view.offset += first * dim.stride * static_cast<std::int64_t>(kernels::size_of(view.type));
  dim.count = static_cast<std::int32_t>(count);
  return part;
}

TensorOperand TensorOperand::shaped(std::initializer_list<std::int64_t> counts) const {
  TensorOperand part = *this;
  const Dim whole = only_dim(part.view, "shaping");
  std::int64_t product = 1;
  for (const std::int64_t c : counts) product *= c;
  if (counts.size() == 0 || counts.size() > most_dims || product != whole.count)
    text::refuse("a row of {} elements shaped as {} in {} dimensions", whole.count, product, counts.size());
  std::int64_t stride = whole.stride * product;
  std::size_t d = 0;
  for (const std::int64_t c : counts) {
    stride /= c;
    part.view.dim[d++] = {static_cast<std::int32_t>(c), static_cast<std::int32_t>(stride)};
  }
  part.view.dims = static_cast<std::uint8_t>(counts.size());
  return part;
}

TensorOperand TensorOperand::spread_rows(std::int64_t rows) const {
  if (view.rows != 1) text::refuse("{} rows spread: expected 1", view.rows);
  if (rows < 1 || rows > most_in_dim) text::refuse("a row spread to {}: expected 1 to {}", rows, most_in_dim);
  TensorOperand part = *this;
  part.view.rows = static_cast<std::int32_t>(rows);
  part.view.row_stride = 0;
  return part;
}

}  // namespace trellis::sim::core
