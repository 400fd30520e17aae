// What Linux's files say of cores and caches, in microseconds and without a library. placement() also orders cores by
// the caches that they share, but asks hwloc, which takes milliseconds.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace trellis::kernels {

inline constexpr const char* system_cpu_folder = "/sys/devices/system/cpu";

// The sizes of the data caches that a hardware thread uses; 0: there is none, or the files do not tell.
struct CacheSizes {
  std::size_t l1_bytes = 0;
  std::size_t l2_bytes = 0;
  std::size_t l3_bytes = 0;
};
CacheSizes cache_sizes(int thread, const std::string& folder = system_cpu_folder);

// How many physical cores these hardware threads belong to. One that the files don't know counts as a core.
int count_cores(const std::vector<int>& threads, const std::string& folder = system_cpu_folder);

// Where a hardware thread is. One that the files don't know is a core of its own, in socket 0, below the L3 cache of
// thread 0.
struct ThreadPlace {
  int first_of_core = 0;  // the core's first hardware thread
  int first_of_l3 = 0;    // the first hardware thread of those that share its L3 cache
  int socket = 0;
};
ThreadPlace place_of(int thread, const std::string& folder = system_cpu_folder);

// The hardware threads that the calling thread may run on, or another process, by the operating system's numbers. Never
// empty. Throws system_error.
std::vector<int> affinity(int process = 0);

// Makes the calling thread run on these hardware threads only. Returns false if the system refuses.
bool stay_on(std::span<const int> threads);

}  // namespace trellis::kernels
