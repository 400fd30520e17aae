// How many threads share work.
#pragma once

#include <algorithm>
#include <cstddef>

namespace trellis::kernels {

// The number of threads to use: as many as are wanted, but no more than there are parts. 0 wanted: one for each core.
inline int useful_threads(int wanted, std::size_t parts, int cores) {
  const int most = std::max(1, wanted == 0 ? cores : wanted);
  return static_cast<int>(std::min(static_cast<std::size_t>(most), parts));
}

}  // namespace trellis::kernels
