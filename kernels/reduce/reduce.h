// Several arrays into one: the arithmetic of collectives.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/reduce/copy.h"
#include "kernels/types/dtype.h"
#include "kernels/types/random.h"

namespace trellis::kernels {

enum class Reduction : std::uint8_t { sum, prod, min, max, avg, scaled_sum };
inline constexpr std::size_t reduction_count = 6;

constexpr std::string_view name(Reduction r) {
  constexpr std::string_view names[] = {"sum", "prod", "min", "max", "avg", "scaled_sum"};
  return names[static_cast<std::size_t>(r)];
}
Reduction reduction_named(std::string_view);  // throws invalid_argument, naming the known ones

struct ReduceOptions {
  Rounding rounding = Rounding::nearest;
  Random random = {};  // of stochastic rounding
  double factor = 1;   // of scaled_sum: every source is multiplied by it before it is added
  int threads = 1;
  Stores stores = Stores::cached;  // streaming suits parts of something large; a large call streams anyhow
};

// dst[i] = sources[0][i] op sources[1][i] op ..., in this order, over one source or more; dst may be one of them
// exactly.
//
// Floats narrower than f32 are accumulated in f32 and rounded once, at the end; f32 in f32, f64 in f64. avg divides the
// sum by the number of sources. The factor is first rounded to the type of the accumulator; for integers towards zero.
// Integers wrap; their avg divides the wrapped sum, towards zero. A NaN among the sources gives a NaN, and NaNs that
// come out are all the one quiet positive NaN. min and max take -0 for less than +0.
void reduce(Reduction, DType, std::span<const void* const> sources, void* dst, std::size_t n,
            const ReduceOptions& = {});

inline constexpr std::size_t most_sources = 4096;

// What a reduce kernel's settings point to.
struct ReduceSettings {
  Reduction op;
  DType type;
  Rounding rounding;
  double factor;
};

}  // namespace trellis::kernels
