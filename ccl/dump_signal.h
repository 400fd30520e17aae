// SIGUSR2 asks a process for the dumps of its communicators.
#pragma once

#include <cstdint>

namespace trellis::ccl {

void hear_dump_signal();             // once a process; a handler that is there already stays
std::uint32_t dump_signals_heard();  // so far

}  // namespace trellis::ccl
