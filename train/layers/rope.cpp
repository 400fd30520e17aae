#include "train/layers/rope.h"

#include <cmath>
#include <numbers>

namespace trellis::train {
namespace {

double llama3(double frequency, const RopeScaling& s) {
  const double turns = static_cast<double>(s.original_positions) * frequency / (2 * std::numbers::pi);
  if (turns > s.high_frequency) return frequency;
  if (turns < s.low_frequency) return frequency / s.factor;
  const double share = (turns - s.low_frequency) / (s.high_frequency - s.low_frequency);
  return (1 - share) * frequency / s.factor + share * frequency;
}

}  // namespace

std::vector<double> rope_frequencies(std::size_t turned, double theta, const RopeScaling& s) {
  std::vector<double> all(turned / 2);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(turned));
    all[i] = s.type == "llama3" ? llama3(frequency, s) : frequency / (s.type == "linear" ? s.factor : 1);
  }
  return all;
}

}  // namespace trellis::train
