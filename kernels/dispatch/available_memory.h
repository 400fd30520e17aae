// How much memory this process can still have.
#pragma once

#include <cstdint>
#include <string>

namespace trellis::kernels {

// In bytes, without swapping, by what Linux's files say of the machine and of the control groups (containers, services)
// that the process is in; the largest number where they tell nothing.
std::uint64_t available_memory(const std::string& processes = "/proc", const std::string& groups = "/sys/fs/cgroup");

}  // namespace trellis::kernels
