// How much CPU time this process may have, and how many threads that keeps busy.
#pragma once

#include <limits>
#include <string>

#include "kernels/dispatch/control_groups.h"

namespace trellis::kernels {

inline constexpr double no_quota = std::numeric_limits<double>::infinity();

// In CPUs, such as 1.5: the least that the control groups (containers, services) around this process grant, by cpu.max
// of version 2 and cpu.cfs_quota_us of version 1. It does not say which CPUs: those are shared with other groups.
double cpu_quota(const std::string& processes = system_processes, const std::string& groups = system_groups);

double quota_here();  // that of this process; asked once

// How many of `cores` cores the quota keeps busy all the time, rounded down but at least 1: once a group has used its
// quota, the system stops all its threads, even one that the others wait for.
int within_quota(int cores, double quota);

}  // namespace trellis::kernels
