// How many threads a rank computes with - one for each core that is its own - and how they wait for each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "ccl/communicator.h"
#include "kernels/dispatch/cpu_quota.h"

namespace trellis::train {

// The cores that a rank may run on. Ranks exchange these values, so that each has those of all.
struct CoresOfRank {
  std::uint64_t machine = 0, group = 0;      // ids of the rank's machine, and of its control group within the machine
  std::uint64_t granted = 0;                 // CPUs that its control group may keep busy; 0: all
  std::array<std::uint64_t, 64> cores = {};  // bit set, by each core's first hardware thread
  void add(int core);
  void grant(const kernels::CgroupCpuQuota&);
};
static_assert(std::is_trivially_copyable_v<CoresOfRank>);

// A core that several ranks may run on counts for each of them in part, and what a control group is granted is divided
// by its ranks. At least 1.
int own_threads(std::span<const CoresOfRank> all, std::size_t rank);

// Whether a rank that computes with so many threads has a core for each of them.
bool has_own_cores(std::span<const CoresOfRank> all, std::size_t rank, int threads);

// The threads of this rank: as many as are wanted; 0: one for each core; less: one for each core that is its own.
// Threads without cores of their own soon yield theirs when they wait. Asks all ranks: each of them calls it.
int compute_threads(ccl::Communicator&, int wanted);

}  // namespace trellis::train
