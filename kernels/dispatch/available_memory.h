// How much memory this process can have, by what Linux's files say of the machine and of the control groups
// (containers, services) that the process is in. In bytes.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/dispatch/control_groups.h"

namespace trellis::kernels {

inline constexpr std::uint64_t unknown_memory = ~std::uint64_t{0};  // no file says how much

// The memory that this process can still get, without swapping.
std::uint64_t available_memory(const std::string& processes = system_processes,
                               const std::string& groups = system_groups);
// The memory that this process could get if none were in use. If none of Linux's files tells it, the size of the
// machine's memory.
std::uint64_t total_memory(const std::string& processes = system_processes, const std::string& groups = system_groups);

}  // namespace trellis::kernels
