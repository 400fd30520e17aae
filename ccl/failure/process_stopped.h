// State of a process on this host.
#pragma once

#include <cstdint>

namespace trellis::ccl {

bool is_stopped(std::int64_t process);  // by a signal or by a debugger

}  // namespace trellis::ccl
