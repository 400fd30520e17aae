// RMSNorm in vectors.
#pragma once

#include "kernels/lanes/column_sums_lanes.h"
#include "kernels/lanes/row_reduction_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <DType type>
void rms_norm(const RowKernelArguments& s) {
  const float epsilon = one_at(s.settings, 0);
  const void* const weight = s.reads[1];
  for (std::size_t row = s.from; row < s.to; ++row) {
    const char* const x = row_at<type>(s.reads[0], row, s.columns);
    char* const y = row_at<type>(s.writes[0], row, s.columns);
    RowSum squares;
    over_row(
        s.columns, [&](std::ptrdiff_t at, auto which, int vector) __attribute__((always_inline)) {
          const F v = get<type>(x, at, which);
          squares.add(vector, v * v, which);
        });
    const float scale = 1 / __builtin_sqrtf(squares.total() / static_cast<float>(s.columns) + epsilon);
    if (s.writes[1] != nullptr) put_one(s.writes[1], row, scale);
    over_row(
        s.columns, [=](std::ptrdiff_t at, auto which, int) __attribute__((always_inline)) {
          set<type>(y, at, (get<type>(x, at, which) * scale) * get<type>(weight, at, which), which);
        });
  }
}

template <DType type>
void rms_norm_gradient(const RowKernelArguments& s) {
  const void* const weight = s.reads[2];
  for (std::size_t row = s.from; row < s.to; ++row) {
    const char* const dy = row_at<type>(s.reads[0], row, s.columns);
    const char* const x = row_at<type>(s.reads[1], row, s.columns);
    char* const dx = row_at<type>(s.writes[0], row, s.columns);
    const float scale = one_at(s.reads[3], row);
    RowSum sum;
    over_row(
        s.columns, [&](std::ptrdiff_t at, auto which, int vector) __attribute__((always_inline)) {
          const F g = get<type>(dy, at, which) * get<type>(weight, at, which);
          sum.add(vector, g * get<type>(x, at, which), which);
        });
    const float factor = (sum.total() * (scale * scale)) / static_cast<float>(s.columns);
    over_row(
        s.columns, [=](std::ptrdiff_t at, auto which, int) __attribute__((always_inline)) {
          const F g = get<type>(dy, at, which) * get<type>(weight, at, which);
          set<type>(dx, at, (g - get<type>(x, at, which) * factor) * scale, which);
        });
  }
}

template <DType type>
void rms_norm_weight(const RowKernelArguments& s) {
  down_columns<1>(
      s, [&](std::size_t row, std::ptrdiff_t at, auto which, F* sums) __attribute__((always_inline)) {
        const F dy = get<type>(row_at<type>(s.reads[0], row, s.columns), at, which);
        const F x = get<type>(row_at<type>(s.reads[1], row, s.columns), at, which);
        sums[0] += dy * (x * one_at(s.reads[2], row));
      });
}

constexpr std::array<RowTwin, 6> table = {{
    {KernelName::of("rms_norm", "f32"), rms_norm<DType::f32>},
    {KernelName::of("rms_norm", "bf16"), rms_norm<DType::bf16>},
    {KernelName::of("rms_norm_gradient", "f32"), rms_norm_gradient<DType::f32>},
    {KernelName::of("rms_norm_gradient", "bf16"), rms_norm_gradient<DType::bf16>},
    {KernelName::of("rms_norm_weight", "f32"), rms_norm_weight<DType::f32>},
    {KernelName::of("rms_norm_weight", "bf16"), rms_norm_weight<DType::bf16>},
}};

const RegisteredRows registered(this_isa, table);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
