// Integers of each width in vectors, and their arithmetic, which wraps.
#pragma once

#include "kernels/lanes/reduce_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <class T>
struct IntegerVectorTypes {
  typedef T Lanes __attribute__((vector_size(4 * lanes)));
  typedef std::make_unsigned_t<T> Wrapping __attribute__((vector_size(4 * lanes)));
  static constexpr int count = 4 * lanes / static_cast<int>(sizeof(T));
};

template <class T, Reduction op>
TRELLIS_INLINE typename IntegerVectorTypes<T>::Lanes joined_integers(typename IntegerVectorTypes<T>::Lanes a,
                                                                     typename IntegerVectorTypes<T>::Lanes b) {
  using Wrapping = typename IntegerVectorTypes<T>::Wrapping;
  if constexpr (op == Reduction::min) return b < a ? b : a;
  if constexpr (op == Reduction::max) return b > a ? b : a;
  if constexpr (op == Reduction::prod) return (typename IntegerVectorTypes<T>::Lanes)((Wrapping)a * (Wrapping)b);
  return (typename IntegerVectorTypes<T>::Lanes)((Wrapping)a + (Wrapping)b);
}

// What is done to each source before it is added (scaled_sum) and to the sum afterwards (avg).
template <class T, Reduction op>
struct IntegerReduceScale {
  using Lanes = typename IntegerVectorTypes<T>::Lanes;
  using Wrapping = typename IntegerVectorTypes<T>::Wrapping;
  Wrapping factor;
  std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t> count;

  explicit IntegerReduceScale(const KernelArguments& s)
      : factor(static_cast<std::make_unsigned_t<T>>(
                   static_cast<std::int64_t>(static_cast<const ReduceSettings*>(s.settings)->factor)) -
               Wrapping{}),
        count(s.sources) {}
  TRELLIS_INLINE Lanes taken(Lanes value) const {
    return op == Reduction::scaled_sum ? (Lanes)((Wrapping)value * factor) : value;
  }
  TRELLIS_INLINE Lanes given(Lanes sum) const {
    if constexpr (op == Reduction::avg)
      for (int i = 0; i < IntegerVectorTypes<T>::count; ++i) sum[i] = static_cast<T>(sum[i] / count);
    return sum;
  }
};

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
