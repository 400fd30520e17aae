// How much CPU time this process may have, and how many threads that keeps busy.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "kernels/dispatch/control_groups.h"

namespace trellis::kernels {

inline constexpr double no_quota = std::numeric_limits<double>::infinity();

struct CgroupCpuQuota {
  double cpus = no_quota;   // such as 1.5
  std::uint64_t group = 0;  // equal for processes that share it, however their containers call the group; 0: none
};

// The least that the control groups (containers, services) around this process grant, by cpu.max of version 2 and
// cpu.cfs_quota_us of version 1. It does not say which CPUs: those are shared with other groups.
CgroupCpuQuota cpu_quota(const std::string& processes = system_processes, const std::string& groups = system_groups);

const CgroupCpuQuota& granted_here();  // this process's quota, read once
inline double quota_here() { return granted_here().cpus; }

// How many of `cores` cores the quota keeps busy all the time, rounded down but at least 1: once a group has used its
// quota, the system stops all its threads, even one that the others wait for.
int within_quota(int cores, double quota);

// How many threads the quota keeps busy, whatever the number of cores; 0: there is no quota. All ranks of the group
// share it: together they may have more cores than that even if each has fewer.
int granted(const CgroupCpuQuota&);

}  // namespace trellis::kernels
