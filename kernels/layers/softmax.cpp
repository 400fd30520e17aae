#include "kernels/layers/softmax.h"

#include <fmt/format.h>

#include <limits>

#include "kernels/layers/elementary.h"
#include "kernels/layers/row_sum_truth.h"
#include "kernels/types/check_arguments.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

std::size_t keys_seen(const SoftmaxSettings& s, std::size_t row, std::size_t columns) {
  return s.queries == 0 ? columns : columns - s.queries + row % s.queries + 1;
}

template <DType type>
void truth(const RowKernelArguments& s) {
  const auto& settings = *static_cast<const SoftmaxSettings*>(s.settings);
  for (std::size_t row = s.from; row < s.to; ++row) {
    const std::size_t seen = keys_seen(settings, row, s.columns);
    const auto t = [&](std::size_t i) { return element(type, s.reads[0], row * s.columns + i) * settings.scale; };
    const float most =
        along_row(seen, -std::numeric_limits<float>::infinity(), t, [](float a, float b) { return b > a ? b : a; });
    const float factor = 1 / row_sum(seen, [&](std::size_t i) { return exponential(t(i) - most); });
    for (std::size_t i = 0; i < s.columns; ++i)
      put_element(type, s.writes[0], row * s.columns + i, i < seen ? exponential(t(i) - most) * factor : 0);
  }
}

template <DType type>
void gradient_truth(const RowKernelArguments& s) {
  const auto& settings = *static_cast<const SoftmaxSettings*>(s.settings);
  for (std::size_t row = s.from; row < s.to; ++row) {
    const std::size_t seen = keys_seen(settings, row, s.columns);
    const auto dy = [&](std::size_t i) { return element(type, s.reads[0], row * s.columns + i); };
    const auto y = [&](std::size_t i) { return element(type, s.reads[1], row * s.columns + i); };
    const float sum = row_sum(seen, [&](std::size_t i) { return dy(i) * y(i); });
    for (std::size_t i = 0; i < s.columns; ++i)
      put_element(type, s.writes[0], row * s.columns + i, i < seen ? (y(i) * (dy(i) - sum)) * settings.scale : 0);
  }
}

constexpr SoftmaxSettings sample{0.125F, 0};

template <DType type>
void add_to(std::vector<RowKernel>& all) {
  const RowOperandSpec table{type, OperandShape::table};
  all.push_back({.name = fmt::format("softmax.{}", name(type)),
                 .reads = {table},
                 .writes = {table},
                 .settings = &sample,
                 .truth = truth<type>});
  all.push_back({.name = fmt::format("softmax_gradient.{}", name(type)),
                 .reads = {table, table},
                 .writes = {table},
                 .settings = &sample,
                 .truth = gradient_truth<type>});
}

const RegisteredRows registered({add_to<DType::f32>, add_to<DType::bf16>});

void check_queries(std::string_view kernel, std::size_t queries, std::size_t rows, std::size_t columns) {
  if (queries == 0 || (queries <= columns && rows % queries == 0)) return;
  text::refuse(
      "{}: {} queries do not fit {} rows of {} keys; expected a divisor of the rows, "
      "at most the keys",
      kernel, queries, rows, columns);
}

}  // namespace

void softmax(DType type, const void* x, void* y, std::size_t rows, std::size_t columns, const SoftmaxOptions& o) {
  const std::size_t bytes = check_table("softmax", type, rows, columns) * size_of(type);
  check_queries("softmax", o.queries, rows, columns);
  check_threads("softmax", o.threads);
  const KernelOperand out{"y", y, bytes}, in{"x", x, bytes};
  check_operands("softmax", {&out, 1}, {&in, 1}, true);
  const SoftmaxSettings settings{o.scale, o.queries};
  run_rows(fmt::format("softmax.{}", name(type)),
           {.rows = rows, .columns = columns, .writes = &y, .reads = &x, .settings = &settings}, o.threads);
}

void softmax_gradient(DType type, const void* dy, const void* y, void* dx, std::size_t rows, std::size_t columns,
                      const SoftmaxOptions& o) {
  const std::size_t bytes = check_table("softmax_gradient", type, rows, columns) * size_of(type);
  check_queries("softmax_gradient", o.queries, rows, columns);
  check_threads("softmax_gradient", o.threads);
  const KernelOperand out{"dx", dx, bytes};
  const KernelOperand in[] = {{"dy", dy, bytes}, {"y", y, bytes}};
  check_operands("softmax_gradient", {&out, 1}, in, true);
  const SoftmaxSettings settings{o.scale, o.queries};
  const void* const reads[] = {dy, y};
  run_rows(fmt::format("softmax_gradient.{}", name(type)),
           {.rows = rows, .columns = columns, .writes = &dx, .reads = reads, .settings = &settings}, o.threads);
}

}  // namespace trellis::kernels
