// Softmax in vectors.
#pragma once

#include "kernels/lanes/elementary_lanes.h"
#include "kernels/lanes/row_reduction_lanes.h"
#include "kernels/layers/softmax.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

TRELLIS_INLINE std::size_t keys_seen(const SoftmaxSettings& s, std::size_t row, std::size_t columns) {
  return s.queries == 0 ? columns : columns - s.queries + row % s.queries + 1;
}

template <DType type>
void softmax(const RowKernelArguments& s) {
  const auto& settings = *static_cast<const SoftmaxSettings*>(s.settings);
  const float scale = settings.scale;
  for (std::size_t row = s.from; row < s.to; ++row) {
    const char* const x = row_at<type>(s.reads[0], row, s.columns);
    char* const y = row_at<type>(s.writes[0], row, s.columns);
    const std::size_t seen = keys_seen(settings, row, s.columns);
    RowLargest largest;
    over_row(
        seen, [&](std::ptrdiff_t at, auto which, int vector)
                  __attribute__((always_inline)) { largest.add(vector, get<type>(x, at, which) * scale, which); });
    const float most = largest.total();
    RowSum sum;
    over_row(
        seen, [&](std::ptrdiff_t at, auto which, int vector) __attribute__((always_inline)) {
          sum.add(vector, exponential_lanes(get<type>(x, at, which) * scale - most), which);
        });
    const float factor = 1 / sum.total();
    over_row(
        seen, [=](std::ptrdiff_t at, auto which, int) __attribute__((always_inline)) {
          set<type>(y, at, exponential_lanes(get<type>(x, at, which) * scale - most) * factor, which);
        });
    std::memset(y + seen * size_of(type), 0, (s.columns - seen) * size_of(type));
  }
}

template <DType type>
void softmax_gradient(const RowKernelArguments& s) {
  const auto& settings = *static_cast<const SoftmaxSettings*>(s.settings);
  const float scale = settings.scale;
  for (std::size_t row = s.from; row < s.to; ++row) {
    const char* const dy = row_at<type>(s.reads[0], row, s.columns);
    const char* const y = row_at<type>(s.reads[1], row, s.columns);
    char* const dx = row_at<type>(s.writes[0], row, s.columns);
    const std::size_t seen = keys_seen(settings, row, s.columns);
    RowSum terms;
    over_row(
        seen, [&](std::ptrdiff_t at, auto which, int vector) __attribute__((always_inline)) {
          terms.add(vector, get<type>(dy, at, which) * get<type>(y, at, which), which);
        });
    const float sum = terms.total();
    over_row(
        seen, [=](std::ptrdiff_t at, auto which, int) __attribute__((always_inline)) {
          set<type>(dx, at, (get<type>(y, at, which) * (get<type>(dy, at, which) - sum)) * scale, which);
        });
    std::memset(dx + seen * size_of(type), 0, (s.columns - seen) * size_of(type));
  }
}

constexpr std::array<RowTwin, 4> table = {{
    {KernelName::of("softmax", "f32"), softmax<DType::f32>},
    {KernelName::of("softmax", "bf16"), softmax<DType::bf16>},
    {KernelName::of("softmax_gradient", "f32"), softmax_gradient<DType::f32>},
    {KernelName::of("softmax_gradient", "bf16"), softmax_gradient<DType::bf16>},
}};

const RegisteredRows registered(this_isa, table);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
