// The cores of a host, as a rank on it sees them.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/dispatch/cpu_quota.h"
#include "kernels/dispatch/sysfs_topology.h"

namespace trellis::ccl {

struct AllowedCores {
  std::vector<int> threads;                  // CPUs that it may run on
  std::vector<kernels::ThreadPlace> places;  // of each of these CPUs
  kernels::CgroupCpuQuota quota = {};        // of its control group
  std::size_t l2_bytes = 0, l3_bytes = 0;    // 0: there is none, or it is not known
};
AllowedCores seen_here();  // by the calling thread

}  // namespace trellis::ccl
