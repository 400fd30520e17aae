#include "kernels/layers/layer_norm.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/layers/row_sum_truth.h"
#include "kernels/types/check_arguments.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

template <DType type>
void truth(const RowKernelArguments& s) {
  const float epsilon = *static_cast<const float*>(s.settings);
  const auto count = static_cast<float>(s.columns);
  for (std::size_t row = s.from; row < s.to; ++row) {
    const auto x = [&](std::size_t i) { return element(type, s.reads[0], row * s.columns + i); };
    const float mean = row_sum(s.columns, x) / count;
    const float squares = row_sum(s.columns, [&](std::size_t i) { return (x(i) - mean) * (x(i) - mean); });
    const float scale = 1 / std::sqrt(squares / count + epsilon);
    if (s.writes[1] != nullptr) put_element(DType::f32, s.writes[1], row, mean);
    if (s.writes[2] != nullptr) put_element(DType::f32, s.writes[2], row, scale);
    for (std::size_t i = 0; i < s.columns; ++i)
      put_element(type, s.writes[0], row * s.columns + i,
                  ((x(i) - mean) * scale) * element(type, s.reads[1], i) + element(type, s.reads[2], i));
  }
}

template <DType type>
void gradient_truth(const RowKernelArguments& s) {
  const auto count = static_cast<float>(s.columns);
  for (std::size_t row = s.from; row < s.to; ++row) {
    const float mean = element(DType::f32, s.reads[3], row), scale = element(DType::f32, s.reads[4], row);
    const auto h = [&](std::size_t i) { return (element(type, s.reads[1], row * s.columns + i) - mean) * scale; };
    const auto g = [&](std::size_t i) {
      return element(type, s.reads[0], row * s.columns + i) * element(type, s.reads[2], i);
    };
    const float level = row_sum(s.columns, g) / count;
    const float tilt = row_sum(s.columns, [&](std::size_t i) { return g(i) * h(i); }) / count;
    for (std::size_t i = 0; i < s.columns; ++i)
      put_element(type, s.writes[0], row * s.columns + i, ((g(i) - level) - h(i) * tilt) * scale);
  }
}

template <DType type>
void weight_truth(const RowKernelArguments& s) {
  for (std::size_t i = s.from; i < s.to; ++i) {
    const auto dy = [&](std::size_t row) { return element(type, s.reads[0], row * s.columns + i); };
    const auto h = [&](std::size_t row) {
      const float x = element(type, s.reads[1], row * s.columns + i);
      return (x - element(DType::f32, s.reads[2], row)) * element(DType::f32, s.reads[3], row);
    };
    put_element(DType::f32, s.writes[0], i, column_sum(s.rows, [&](std::size_t row) { return dy(row) * h(row); }));
    put_element(DType::f32, s.writes[1], i, column_sum(s.rows, dy));
  }
}

constexpr float sample_epsilon = 1e-5F;

template <DType type>
void add_to(std::vector<RowKernel>& all) {
  const RowOperandSpec table{type, OperandShape::table}, weight{type, OperandShape::column},
      one{DType::f32, OperandShape::row};
  const RowOperandSpec sum{DType::f32, OperandShape::column};
  all.push_back({.name = fmt::format("layer_norm.{}", name(type)),
                 .reads = {table, weight, weight},
                 .writes = {table, one, one},
                 .settings = &sample_epsilon,
                 .truth = truth<type>});
  all.push_back({.name = fmt::format("layer_norm_gradient.{}", name(type)),
                 .reads = {table, table, weight, one, one},
                 .writes = {table},
                 .truth = gradient_truth<type>});
  all.push_back({.name = fmt::format("layer_norm_weight.{}", name(type)),
                 .reads = {table, table, one, one},
                 .writes = {sum, sum},
                 .by_columns = true,
                 .truth = weight_truth<type>});
}

const RegisteredRows registered({add_to<DType::f32>, add_to<DType::bf16>});

// An optional operand: data may be null.
KernelOperand floats(std::string_view name, const float* data, std::size_t n) {
  return array_of("layer_norm", name, data, data == nullptr ? 0 : n);
}

}  // namespace

void layer_norm(DType type, const void* x, const void* weight, const void* bias, void* y, LayerNormStatistics kept,
                std::size_t rows, std::size_t columns, const LayerNormOptions& o) {
  const std::size_t bytes = check_table("layer_norm", type, rows, columns) * size_of(type);
  check_threads("layer_norm", o.threads);
  const std::size_t column_bytes = rows == 0 ? 0 : columns * size_of(type);
  const KernelOperand out[] = {{"y", y, bytes}, floats("means", kept.means, rows), floats("scales", kept.scales, rows)};
  const KernelOperand in{"x", x, bytes};
  const KernelOperand shared[] = {{"weight", weight, column_bytes}, {"bias", bias, column_bytes}};
  check_operands("layer_norm", out, {&in, 1}, true);
  check_operands("layer_norm", out, shared, false);
  void* const writes[] = {y, kept.means, kept.scales};
  const void* const reads[] = {x, weight, bias};
  run_rows(fmt::format("layer_norm.{}", name(type)),
           {.rows = rows, .columns = columns, .writes = writes, .reads = reads, .settings = &o.epsilon}, o.threads);
}

void layer_norm_gradient(DType type, const void* dy, const void* x, const void* weight, const LayerNormStatistics& kept,
                         void* dx, float* dweight, float* dbias, std::size_t rows, std::size_t columns, int threads) {
  const std::size_t bytes = check_table("layer_norm_gradient", type, rows, columns) * size_of(type);
  check_threads("layer_norm_gradient", threads);
  if ((dweight == nullptr) != (dbias == nullptr) && columns != 0)
    text::refuse("layer_norm_gradient: {} is null; both sums or neither", dweight == nullptr ? "dweight" : "dbias");
  const KernelOperand out[] = {floats("dweight", dweight, columns), floats("dbias", dbias, columns), {"dx", dx, bytes}};
  const KernelOperand tables[] = {{"dy", dy, bytes}, {"x", x, bytes}};
  const KernelOperand others[] = {{"weight", weight, rows == 0 ? 0 : columns * size_of(type)},
                                  array_of("layer_norm_gradient", "means", kept.means, rows),
                                  array_of("layer_norm_gradient", "scales", kept.scales, rows)};
  check_operands("layer_norm_gradient", out, others, false);
  check_operands("layer_norm_gradient", {out, 2}, tables, false);
  check_operands("layer_norm_gradient", {out + 2, 1}, tables, true);
  if (dweight != nullptr) {  // before dx is written, which may overwrite dy or x
    void* const sums[] = {dweight, dbias};
    const void* const reads[] = {dy, x, kept.means, kept.scales};
    run_rows(fmt::format("layer_norm_weight.{}", name(type)),
             {.rows = rows, .columns = columns, .writes = sums, .reads = reads}, threads);
  }
  const void* const reads[] = {dy, x, weight, kept.means, kept.scales};
  run_rows(fmt::format("layer_norm_gradient.{}", name(type)),
           {.rows = rows, .columns = columns, .writes = &dx, .reads = reads}, threads);
}

}  // namespace trellis::kernels
