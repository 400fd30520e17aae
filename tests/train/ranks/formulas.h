// Weights and tokens by the formulas of tests/oracles/llama_torch.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trellis::train {

inline constexpr std::size_t oracle_length = 16;
inline constexpr std::uint32_t oracle_vocabulary = 64;

inline std::uint32_t mixed(std::uint32_t h) {
  for (int round = 0; round < 2; ++round) h = (h ^ (h >> 16)) * 0x21F0'AAAD;
  return h ^ (h >> 15);
}

inline double pseudo_random(const std::string& name, std::uint64_t index) {
  std::uint32_t start = 0;
  for (std::size_t i = 0; i < name.size(); ++i)
    start += static_cast<std::uint32_t>(i + 1) * static_cast<std::uint32_t>(name[i]);
  return mixed(start * 7919 + static_cast<std::uint32_t>(index)) / 4294967296.0 - 0.5;
}

inline std::vector<std::int32_t> tokens_of(std::uint32_t step, std::uint32_t number) {
  std::vector<std::int32_t> tokens;
  for (std::uint32_t i = 0; i <= oracle_length; ++i) {
    const std::uint32_t b = mixed((step * 1000 + number) * 100 + i);
    tokens.push_back(static_cast<std::int32_t>(
        i == 0 || b % 8 == 0 ? b / 8 % oracle_vocabulary
                             : (static_cast<std::uint32_t>(tokens.back()) * 5 + 3) % oracle_vocabulary));
  }
  return tokens;
}

}  // namespace trellis::train
