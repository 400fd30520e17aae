// The state that an engine keeps between instructions besides its registers: accumulators and random generators for
// each partition.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace trellis::sim::core {

// XORWOW (Marsaglia, 2003): five words and a counter.
struct Xorwow {
  std::array<std::uint32_t, 6> words;

  std::uint32_t next() {
    std::uint32_t t = words[4];
    const std::uint32_t s = words[0];
    words[4] = words[3];
    words[3] = words[2];
    words[2] = words[1];
    words[1] = s;
    t ^= t >> 2;
    t ^= t << 1;
    t ^= s ^ (s << 4);
    words[0] = t;
    words[5] += 362437;
    return t + words[5];
  }
};

inline constexpr std::size_t lane_generators = 4;  // of the Vector engine; GpSimd uses the first

struct PartitionState {
  float accumulator = 0;
  std::array<Xorwow, lane_generators> random = {};
};

struct EngineState {
  std::vector<PartitionState> lanes;  // of each partition

  explicit EngineState(std::size_t partitions) : lanes(partitions) { seed(0); }
  // How the hardware spreads a seed is not published; this gives every lane its own words.
  void seed(std::uint32_t value) {
    std::uint64_t x = value;
    for (PartitionState& lane : lanes)
      for (Xorwow& g : lane.random)
        for (std::uint32_t& word : g.words) {
          x += 0x9E37'79B9'7F4A'7C15;
          std::uint64_t y = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9;
          y = (y ^ (y >> 27)) * 0x94D0'49BB'1331'11EB;
          word = static_cast<std::uint32_t>(y >> 32) | 1U;
        }
  }
};

}  // namespace trellis::sim::core
