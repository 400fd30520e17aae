// LayerNorm in vectors.
#pragma once

#include "kernels/lanes/column_sums_lanes.h"
#include "kernels/lanes/row_reduction_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <DType type>
void layer_norm(const RowKernelArguments& s) {
  const float epsilon = one_at(s.settings, 0), count = static_cast<float>(s.columns);
  const void* const weight = s.reads[1];
  const void* const bias = s.reads[2];
  for (std::size_t row = s.from; row < s.to; ++row) {
    const char* const x = row_at<type>(s.reads[0], row, s.columns);
    char* const y = row_at<type>(s.writes[0], row, s.columns);
    RowSum sum, squares;
    over_row(
        s.columns, [&](std::ptrdiff_t at, auto which, int vector)
                       __attribute__((always_inline)) { sum.add(vector, get<type>(x, at, which), which); });
    const float mean = sum.total() / count;
    over_row(
        s.columns, [&](std::ptrdiff_t at, auto which, int vector) __attribute__((always_inline)) {
          const F v = get<type>(x, at, which) - mean;
          squares.add(vector, v * v, which);
        });
    const float scale = 1 / __builtin_sqrtf(squares.total() / count + epsilon);
    if (s.writes[1] != nullptr) put_one(s.writes[1], row, mean);
    if (s.writes[2] != nullptr) put_one(s.writes[2], row, scale);
    over_row(
        s.columns, [=](std::ptrdiff_t at, auto which, int) __attribute__((always_inline)) {
          const F v = ((get<type>(x, at, which) - mean) * scale) * get<type>(weight, at, which);
          set<type>(y, at, v + get<type>(bias, at, which), which);
        });
  }
}

template <DType type>
void layer_norm_gradient(const RowKernelArguments& s) {
  const float count = static_cast<float>(s.columns);
  const void* const weight = s.reads[2];
  for (std::size_t row = s.from; row < s.to; ++row) {
    const char* const dy = row_at<type>(s.reads[0], row, s.columns);
    const char* const x = row_at<type>(s.reads[1], row, s.columns);
    char* const dx = row_at<type>(s.writes[0], row, s.columns);
    const float mean = one_at(s.reads[3], row), scale = one_at(s.reads[4], row);
    RowSum sum, product;
    over_row(
        s.columns, [&](std::ptrdiff_t at, auto which, int vector) __attribute__((always_inline)) {
          const F g = get<type>(dy, at, which) * get<type>(weight, at, which);
          sum.add(vector, g, which);
          product.add(vector, g * ((get<type>(x, at, which) - mean) * scale), which);
        });
    const float level = sum.total() / count, tilt = product.total() / count;
    over_row(
        s.columns, [=](std::ptrdiff_t at, auto which, int) __attribute__((always_inline)) {
          const F g = get<type>(dy, at, which) * get<type>(weight, at, which);
          const F h = (get<type>(x, at, which) - mean) * scale;
          set<type>(dx, at, ((g - level) - h * tilt) * scale, which);
        });
  }
}

template <DType type>
void layer_norm_weight(const RowKernelArguments& s) {
  down_columns<2>(
      s, [&](std::size_t row, std::ptrdiff_t at, auto which, F* sums) __attribute__((always_inline)) {
        const F dy = get<type>(row_at<type>(s.reads[0], row, s.columns), at, which);
        const F x = get<type>(row_at<type>(s.reads[1], row, s.columns), at, which);
        sums[0] += dy * ((x - one_at(s.reads[2], row)) * one_at(s.reads[3], row));
        sums[1] += dy;
      });
}

constexpr std::array<RowTwin, 6> table = {{
    {KernelName::of("layer_norm", "f32"), layer_norm<DType::f32>},
    {KernelName::of("layer_norm", "bf16"), layer_norm<DType::bf16>},
    {KernelName::of("layer_norm_gradient", "f32"), layer_norm_gradient<DType::f32>},
    {KernelName::of("layer_norm_gradient", "bf16"), layer_norm_gradient<DType::bf16>},
    {KernelName::of("layer_norm_weight", "f32"), layer_norm_weight<DType::f32>},
    {KernelName::of("layer_norm_weight", "bf16"), layer_norm_weight<DType::bf16>},
}};

const RegisteredRows registered(this_isa, table);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
