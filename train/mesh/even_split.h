// How n things are shared out among ranks that need not divide them: in runs, of which the first ones have one more.
#pragma once

#include <algorithm>
#include <cstddef>

namespace trellis::train {

struct SplitRange {
  std::size_t first = 0, count = 0;
};

// The i-th of `runs` runs of n things.
inline SplitRange run_of(std::size_t n, std::size_t runs, std::size_t i) {
  const std::size_t rest = n % runs;
  return {i * (n / runs) + std::min(i, rest), n / runs + (i < rest ? 1 : 0)};
}

}  // namespace trellis::train
