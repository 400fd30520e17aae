// Which token comes next, by its logits.
#pragma once

#include <cstdint>
#include <span>

namespace trellis::train {

struct SamplingOptions {
  double temperature = 0;  // 0: the most probable one
  std::size_t top_k = 0;   // only so many of the most probable tokens are drawn from; 0: all
  double top_p = 1;        // only the fewest tokens whose probabilities add up to this
  std::uint64_t seed = 1234;

  void check() const;  // throws invalid_argument
};

// number: of the token among those that are generated, which decides what is drawn. Of equal logits the first is taken.
std::int32_t chosen_token(std::span<const float> logits, const SamplingOptions&, std::uint64_t number);

}  // namespace trellis::train
