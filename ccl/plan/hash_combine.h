// Hashes of calls, which ranks compare to detect mismatches.
#pragma once

#include <cstdint>

namespace trellis::ccl {

inline std::uint64_t hash_combine(std::uint64_t h, std::uint64_t word) {
  h = (h ^ word) * 0x9E37'79B9'7F4A'7C15;
  return h ^ h >> 29;
}

}  // namespace trellis::ccl
