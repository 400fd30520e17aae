// reduce of f32, bf16 and f16: in vectors of f32.
#pragma once

#include <array>

#include "kernels/reduce_lanes.h"
#include "kernels/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// The operands of a walk; of two sources without a look at the list, which the compiler can't keep in registers.
template <int known>
struct Sources {
  const void* const* list;
  const void* first;
  const void* second;
  int count;

  TRELLIS_INLINE const void* at(int k) const {
    if constexpr (known == 2) return k == 0 ? first : second;
    return list[k];
  }
};

template <DType type, Reduction op, Rounding rounding, int known>
void reduce_known(const Stretch& s) {
  constexpr Format format = format_of(type);
  constexpr bool random = rounding == Rounding::stochastic;
  constexpr int rows = random_bits(type) == 16 ? 4 : 2;
  const Sources<known> sources{s.reads, s.reads[0], s.reads[known == 2 ? 1 : 0], s.sources};
  void* const dst = s.writes[0];
  const F factor = f_all(static_cast<float>(static_cast<const ReduceSettings*>(s.settings)->factor));
  const F count = f_all(static_cast<float>(s.sources));
  walk<rows, random>(s, size_of(type), [=](auto streams) {
    return [=](std::ptrdiff_t at, auto which, U bits) __attribute__((always_inline)) {
      const auto source = [=](int k) __attribute__((always_inline)) {
        const F value = read<format>(sources.at(k), at, which);
        return op == Reduction::scaled_sum ? value * factor : value;
      };
      F sum = source(0);
      if constexpr (known == 2)
        sum = joined<op>(sum, source(1));
      else
        for (int k = 1; k < sources.count; ++k) sum = joined<op>(sum, source(k));
      if constexpr (op == Reduction::avg) sum = sum / count;
      write_result<format, rounding, decltype(streams)::value>(dst, at, sum, bits, which);
    };
  });
}

template <DType type, Reduction op, Rounding rounding>
void reduce_floats(const Stretch& s) {
  s.sources == 2 ? reduce_known<type, op, rounding, 2>(s) : reduce_known<type, op, rounding, 0>(s);
}

template <std::size_t i>
constexpr Twin twin() {
  constexpr DType types[] = {DType::f32, DType::bf16, DType::bf16, DType::f16, DType::f16};
  constexpr DType type = types[i / reduction_count];
  constexpr Rounding rounding =
      i / reduction_count % 2 == 0 && i >= reduction_count ? Rounding::stochastic : Rounding::nearest;
  return {Name::of("reduce", name(reduction(i)), name(type), name(rounding)),
          reduce_floats<type, reduction(i), rounding>};
}

constexpr auto floats = []<std::size_t... i>(std::index_sequence<i...>) { return std::array{twin<i>()...}; }
(std::make_index_sequence<5 * reduction_count>{});

const Registered registered(this_isa, floats);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
