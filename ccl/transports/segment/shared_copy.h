// Writes to memory that another core has read.
#pragma once

#include <cstring>

#include "kernels/reduce/copy.h"

namespace trellis::ccl {

// memcpy uses the CPU's string instruction where that is fast. The instruction takes lines that another core has read
// without reading them first: half the time of a vector loop, after a start-up cost.
inline void copy_to_shared(std::byte* to, const std::byte* data, std::size_t bytes) {
  constexpr std::size_t least_string = std::size_t{2} << 10;
  if (bytes < least_string)
    kernels::copy(to, data, bytes);
  else
    std::memcpy(to, data, bytes);
}

// Asks for the cache line, and that other cores give it up: a later write need not wait for that. Compilers take
// __builtin_prefetch for that only where they may assume the instruction; every x86-64 CPU takes it, or ignores it.
inline void prefetch_for_writing(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace trellis::ccl
