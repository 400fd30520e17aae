#include "train/layers/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace trellis::train {
namespace {

double llama3(double frequency, const RopeScaling& s) {
  constexpr std::size_t usual = 8192;
  const auto positions = static_cast<double>(s.original_positions == 0 ? usual : s.original_positions);
  const double turns = positions * frequency / (2 * std::numbers::pi);
  if (turns > s.high_frequency) return frequency;
  if (turns < s.low_frequency) return frequency / s.factor;
  const double share = (turns - s.low_frequency) / (s.high_frequency - s.low_frequency);
  return (1 - share) * frequency / s.factor + share * frequency;
}

// The index, in general no whole number, of the pair that turns so many times within the original positions.
double pair_of_turns(double turns, const Rope& r) {
  const auto positions =
      static_cast<double>(r.scaling.original_positions == 0 ? r.positions : r.scaling.original_positions);
  return static_cast<double>(r.turned) * std::log(positions / (turns * 2 * std::numbers::pi)) / (2 * std::log(r.theta));
}

// How much of pair i's frequency is divided by the factor.
double yarn_share(std::size_t i, const Rope& r) {
  const RopeScaling& s = r.scaling;
  double low = pair_of_turns(s.beta_fast, r), high = pair_of_turns(s.beta_slow, r);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(r.turned) - 1);
  if (low == high) high += 0.001;
  return std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
}

double theta_of(const Rope& r, std::size_t length) {
  if (r.scaling.type != "dynamic" || length <= r.positions) return r.theta;
  const double longer = static_cast<double>(length) / static_cast<double>(r.positions);
  const auto d = static_cast<double>(r.turned);
  return r.theta * std::pow(r.scaling.factor * longer - (r.scaling.factor - 1), d / (d - 2));
}

}  // namespace

std::vector<double> rope_frequencies(const Rope& r, std::size_t length) {
  const RopeScaling& s = r.scaling;
  std::vector<double> all(r.turned / 2);
  const double theta = theta_of(r, length);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(r.turned));
    all[i] = frequency;
    if (s.type == "llama3") all[i] = llama3(frequency, s);
    if (s.type == "linear") all[i] = frequency / s.factor;
    if (s.type == "longrope")
      all[i] = frequency / (length > s.original_positions ? s.long_factors : s.short_factors).at(i);
    if (s.type == "yarn") {
      const double share = yarn_share(i, r);
      all[i] = share * frequency / s.factor + (1 - share) * frequency;
    }
  }
  return all;
}

double rope_factor(const Rope& r) {
  const RopeScaling& s = r.scaling;
  if (s.type != "yarn" && s.type != "longrope") return 1;
  if (s.attention_factor > 0) return s.attention_factor;
  if (s.type == "longrope")
    return s.factor <= 1 ? 1 : std::sqrt(1 + std::log(s.factor) / std::log(static_cast<double>(s.original_positions)));
  const auto by = [&](double scale) { return s.factor <= 1 ? 1 : 0.1 * scale * std::log(s.factor) + 1; };
  return s.mscale > 0 && s.mscale_all_dim > 0 ? by(s.mscale) / by(s.mscale_all_dim) : by(1);
}

}  // namespace trellis::train
