// The hash of a text that is the same on every machine and in every version: random bits and cached figures follow from
// it.
#pragma once

#include <cstdint>
#include <string_view>

namespace trellis::kernels {

constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace trellis::kernels
