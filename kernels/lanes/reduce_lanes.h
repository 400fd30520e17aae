// What the twins of reduce have in common.
#pragma once

#include "kernels/lanes/float_load_store_lanes.h"
#include "kernels/reduce/reduce.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

TRELLIS_INLINE I ordered(F f) {  // integers in the order of the floats, -0 before +0
  const I i = (I)f;
  return i ^ (I)((U)(i >> 31) >> 1);
}

template <Reduction op>
TRELLIS_INLINE F joined(F a, F b) {
  if constexpr (op == Reduction::prod) return a * b;
  if constexpr (op == Reduction::min || op == Reduction::max) {
    const F picked = select(op == Reduction::min ? ordered(b) < ordered(a) : ordered(b) > ordered(a), b, a);
    return select((a != a) | (b != b), as_f(u_all(canonical_nan)), picked);
  }
  return a + b;
}

// The sources of a walk. If their number is known at compile time, there is no loop: an instruction of its own reads
// each source, and the CPU's prefetchers learn its stride.
template <int known>
struct ReduceSources {
  const void* first[known == 0 ? 1 : known];
  const void* const* list;
  int number;

  explicit ReduceSources(const KernelArguments& s) : list(s.reads), number(s.sources) {
    for (int k = 0; k < (known == 0 ? 1 : known); ++k) first[k] = s.reads[k];
  }
  // Calls next(source) for each but the first.
  template <class Next>
  TRELLIS_INLINE void each_other(const Next& next) const {
    if constexpr (known == 0)
      for (int k = 1; k < number; ++k) next(list[k]);
    else
      each_of(next, std::make_integer_sequence<int, known - 1>{});
  }

 private:
  template <class Next, int... k>
  TRELLIS_INLINE void each_of(const Next& next, std::integer_sequence<int, k...>) const {
    (next(first[k + 1]), ...);
  }
};

template <Reduction op, class Run>
TRELLIS_INLINE void by_sources(const KernelArguments& s, const Run& run) {
  if (s.sources == 2) return run(std::integral_constant<int, 2>{});
  if constexpr (op == Reduction::sum || op == Reduction::avg) {
    if (s.sources == 4) return run(std::integral_constant<int, 4>{});
    if (s.sources == 8) return run(std::integral_constant<int, 8>{});
  }
  run(std::integral_constant<int, 0>{});
}

// The address `bytes` after array. It is hidden from the compiler, which would else keep an index for every vector in a
// register.
TRELLIS_INLINE const void* place_in(const void* array, std::ptrdiff_t bytes) {
  const void* place = static_cast<const char*>(array) + bytes;
  asm("" : "+r"(place));
  return place;
}

constexpr Reduction reduction(std::size_t i) { return static_cast<Reduction>(i % reduction_count); }

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
