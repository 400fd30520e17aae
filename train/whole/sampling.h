// Which token comes next, by its logits.
#pragma once

#include <cstdint>
#include <span>

namespace trellis::train {

struct Sampling {
  double temperature = 0;  // 0: the most probable one
  std::size_t top_k = 0;   // of so many of the most probable ones; 0: of all
  double top_p = 1;        // of the fewest whose probabilities are this much together
  std::uint64_t seed = 1234;

  void check() const;  // throws invalid_argument
};

// number: of the token among those that are generated, which decides what is drawn. Of equal logits the first is taken.
std::int32_t chosen_token(std::span<const float> logits, const Sampling&, std::uint64_t number);

}  // namespace trellis::train
