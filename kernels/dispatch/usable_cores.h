// Where the calling thread may run: its cores, by hwloc, and the caches that they have.
#pragma once

#include <cstddef>
#include <vector>

namespace trellis::kernels {

struct UsableCores {
  // A hardware thread of each physical core that the calling thread may use, by the operating system's number; cores
  // that share a cache are neighbours. Never empty.
  std::vector<int> cores;
  std::size_t l1_bytes = 0;  // data, of the first of these cores; 0: not known, or none
  std::size_t l2_bytes = 0;
  std::size_t l3_bytes = 0;
};

// Asks anew at every call: it follows sched_setaffinity and taskset. Binds nothing.
UsableCores placement();

}  // namespace trellis::kernels
