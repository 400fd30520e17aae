// How many threads share work.
#pragma once

#include <algorithm>
#include <cstddef>

namespace trellis::kernels {

// Of the threads that are wanted, as many as have a part; 0 are wanted: one for each core.
inline int useful_threads(int wanted, std::size_t parts, int cores) {
  const int most = std::max(1, wanted == 0 ? cores : wanted);
  return static_cast<int>(std::min(static_cast<std::size_t>(most), parts));
}

}  // namespace trellis::kernels
