// Cross-entropy in vectors.
#pragma once

#include "kernels/lanes/elementary_lanes.h"
#include "kernels/lanes/row_reduction_lanes.h"
#include "kernels/layers/cross_entropy.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <DType type>
void cross_entropy(const RowKernelArguments& s) {
  for (std::size_t row = s.from; row < s.to; ++row) {
    const char* const x = row_at<type>(s.reads[0], row, s.columns);
    RowLargest largest;
    over_row(
        s.columns, [&](std::ptrdiff_t at, auto which, int vector)
                       __attribute__((always_inline)) { largest.add(vector, get<type>(x, at, which), which); });
    const float most = largest.total(), taken = most == -__builtin_inff() ? 0 : most;  // avoids -infinity - -infinity
    RowSum sum;
    over_row(
        s.columns, [&](std::ptrdiff_t at, auto which, int vector) __attribute__((always_inline)) {
          sum.add(vector, exponential_lanes(get<type>(x, at, which) - taken), which);
        });
    put_one(s.writes[0], row, most);
    put_one(s.writes[1], row, sum.total());
  }
}

template <DType type>
void cross_entropy_gradient(const RowKernelArguments& s) {
  const auto& settings = *static_cast<const CrossEntropySettings*>(s.settings);
  for (std::size_t row = s.from; row < s.to; ++row) {
    const char* const x = row_at<type>(s.reads[0], row, s.columns);
    char* const dx = row_at<type>(s.writes[0], row, s.columns);
    std::int32_t label;
    std::memcpy(&label, static_cast<const char*>(s.reads[1]) + row * sizeof label, sizeof label);
    if (label == settings.ignore) {
      std::memset(dx, 0, s.columns * size_of(type));
      continue;
    }
    const std::int64_t column = label - settings.first;
    const bool here = column >= 0 && column < static_cast<std::int64_t>(s.columns);
    const std::int32_t target = here ? static_cast<std::int32_t>(column) : -1;
    const float log_sum = one_at(s.reads[2], row), factor = settings.factor;
    over_row(
        s.columns, [=](std::ptrdiff_t at, auto which, int) __attribute__((always_inline)) {
          const F share = exponential_lanes(get<type>(x, at, which) - log_sum);
          const F hit = select((I)lane_numbers() == target - static_cast<std::int32_t>(at), f_all(1), F{});
          set<type>(dx, at, (share - hit) * factor, which);
        });
  }
}

constexpr std::array<RowTwin, 4> table = {{
    {KernelName::of("cross_entropy", "f32"), cross_entropy<DType::f32>},
    {KernelName::of("cross_entropy", "bf16"), cross_entropy<DType::bf16>},
    {KernelName::of("cross_entropy_gradient", "f32"), cross_entropy_gradient<DType::f32>},
    {KernelName::of("cross_entropy_gradient", "bf16"), cross_entropy_gradient<DType::bf16>},
}};

const RegisteredRows registered(this_isa, table);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
