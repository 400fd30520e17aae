// How many descriptors this process may have (RLIMIT_NOFILE), and what share of them strangers may take.
#pragma once

#include <cstddef>

namespace trellis::device {

// As many as the number can say where there is no limit.
std::size_t descriptor_limit();
// Most of the descriptors that a process may have are for the program: connections that have proven nothing may use a
// small share.
std::size_t most_silent(std::size_t limit);

}  // namespace trellis::device
