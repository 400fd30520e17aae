#include "kernels/layers/rms_norm.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/layers/row_sum_truth.h"
#include "kernels/types/check_arguments.h"

namespace trellis::kernels {
namespace {

template <DType type>
void truth(const RowKernelArguments& s) {
  const float epsilon = *static_cast<const float*>(s.settings);
  for (std::size_t row = s.from; row < s.to; ++row) {
    const auto x = [&](std::size_t i) { return element(type, s.reads[0], row * s.columns + i); };
    const float squares = row_sum(s.columns, [&](std::size_t i) { return x(i) * x(i); });
    const float scale = 1 / std::sqrt(squares / static_cast<float>(s.columns) + epsilon);
    if (s.writes[1] != nullptr) put_element(DType::f32, s.writes[1], row, scale);
    for (std::size_t i = 0; i < s.columns; ++i)
      put_element(type, s.writes[0], row * s.columns + i, (x(i) * scale) * element(type, s.reads[1], i));
  }
}

template <DType type>
void gradient_truth(const RowKernelArguments& s) {
  for (std::size_t row = s.from; row < s.to; ++row) {
    const float scale = element(DType::f32, s.reads[3], row);
    const auto x = [&](std::size_t i) { return element(type, s.reads[1], row * s.columns + i); };
    const auto g = [&](std::size_t i) {
      return element(type, s.reads[0], row * s.columns + i) * element(type, s.reads[2], i);
    };
    const float sum = row_sum(s.columns, [&](std::size_t i) { return g(i) * x(i); });
    const float factor = (sum * (scale * scale)) / static_cast<float>(s.columns);
    for (std::size_t i = 0; i < s.columns; ++i)
      put_element(type, s.writes[0], row * s.columns + i, (g(i) - x(i) * factor) * scale);
  }
}

template <DType type>
void weight_truth(const RowKernelArguments& s) {
  for (std::size_t i = s.from; i < s.to; ++i)
    put_element(DType::f32, s.writes[0], i, column_sum(s.rows, [&](std::size_t row) {
                  const float x = element(type, s.reads[1], row * s.columns + i);
                  return element(type, s.reads[0], row * s.columns + i) * (x * element(DType::f32, s.reads[2], row));
                }));
}

constexpr float sample_epsilon = 1e-5F;

template <DType type>
void add_to(std::vector<RowKernel>& all) {
  const RowOperandSpec table{type, OperandShape::table}, weight{type, OperandShape::column},
      scale{DType::f32, OperandShape::row};
  all.push_back({.name = fmt::format("rms_norm.{}", name(type)),
                 .reads = {table, weight},
                 .writes = {table, scale},
                 .settings = &sample_epsilon,
                 .truth = truth<type>});
  all.push_back({.name = fmt::format("rms_norm_gradient.{}", name(type)),
                 .reads = {table, table, weight, scale},
                 .writes = {table},
                 .truth = gradient_truth<type>});
  all.push_back({.name = fmt::format("rms_norm_weight.{}", name(type)),
                 .reads = {table, table, scale},
                 .writes = {{DType::f32, OperandShape::column}},
                 .by_columns = true,
                 .truth = weight_truth<type>});
}

const RegisteredRows registered({add_to<DType::f32>, add_to<DType::bf16>});

}  // namespace

void rms_norm(DType type, const void* x, const void* weight, void* y, float* scales, std::size_t rows,
              std::size_t columns, const RmsNormOptions& o) {
  const std::size_t bytes = check_table("rms_norm", type, rows, columns) * size_of(type);
  check_threads("rms_norm", o.threads);
  const KernelOperand out[] = {{"y", y, bytes}, array_of("rms_norm", "scales", scales, scales == nullptr ? 0 : rows)};
  const KernelOperand in{"x", x, bytes};
  const KernelOperand shared{"weight", weight, rows == 0 ? 0 : columns * size_of(type)};
  check_operands("rms_norm", out, {&in, 1}, true);
  check_operands("rms_norm", out, {&shared, 1}, false);
  void* const writes[] = {y, scales};
  const void* const reads[] = {x, weight};
  run_rows(fmt::format("rms_norm.{}", name(type)),
           {.rows = rows, .columns = columns, .writes = writes, .reads = reads, .settings = &o.epsilon}, o.threads);
}

void rms_norm_gradient(DType type, const void* dy, const void* x, const void* weight, const float* scales, void* dx,
                       float* dweight, std::size_t rows, std::size_t columns, int threads) {
  const std::size_t bytes = check_table("rms_norm_gradient", type, rows, columns) * size_of(type);
  check_threads("rms_norm_gradient", threads);
  const KernelOperand out{"dx", dx, bytes};
  const KernelOperand sum = array_of("rms_norm_gradient", "dweight", dweight, dweight == nullptr ? 0 : columns);
  const KernelOperand writes_checked[] = {out, sum};
  const KernelOperand tables[] = {{"dy", dy, bytes}, {"x", x, bytes}};
  const KernelOperand others[] = {{"weight", weight, rows == 0 ? 0 : columns * size_of(type)},
                                  array_of("rms_norm_gradient", "scales", scales, rows)};
  check_operands("rms_norm_gradient", writes_checked, others, false);
  check_operands("rms_norm_gradient", {&sum, 1}, tables, false);
  check_operands("rms_norm_gradient", {&out, 1}, tables, true);
  const void* const reads[] = {dy, x, weight, scales};
  if (dweight != nullptr) {  // before dx is written, which may overwrite dy or x
    void* const writes[] = {dweight};
    const void* const sum_reads[] = {dy, x, scales};
    run_rows(fmt::format("rms_norm_weight.{}", name(type)),
             {.rows = rows, .columns = columns, .writes = writes, .reads = sum_reads}, threads);
  }
  void* const writes[] = {dx};
  run_rows(fmt::format("rms_norm_gradient.{}", name(type)),
           {.rows = rows, .columns = columns, .writes = writes, .reads = reads}, threads);
}

}  // namespace trellis::kernels
