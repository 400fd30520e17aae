// The tuner: divides sizes into ranges, each with the algorithm config that it chooses by measured or simulated costs.
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "schedule/algorithms/algorithm_config.h"

namespace trellis::schedule {

inline constexpr double worth_changing = 0.03;  // a change of config must save at least this part of the time

// Cost has `config`, and `time` in any unit. Call chosen() for the sizes in ascending order.
template <class Cost>
class SizeRangeTuner {
 public:
  explicit SizeRangeTuner(bool family = false) : family_(family) {}

  // Takes the costs at the next size, the cheapest first, and returns the cost of the config chosen there. The config
  // of the size before stays while it serves and no other is better by worth_changing. Null: no config serves.
  const Cost* chosen(std::span<const Cost> costs) {
    changed_ = false;
    if (costs.empty()) return nullptr;
    const Cost* best = &costs.front();
    if (held_) {
      const auto still = std::ranges::find_if(costs, [&](const Cost& c) { return is_held(c.config); });
      if (still != costs.end() &&
          static_cast<double>(best->time) >= static_cast<double>(still->time) * (1 - worth_changing))
        return &*still;
    }
    changed_ = !held_ || best->config != *held_;
    held_ = best->config;
    return best;
  }
  bool changed() const { return changed_; }  // whether the last size has another config than the one before
  const AlgorithmConfig* held() const { return held_ ? &*held_ : nullptr; }

 private:
  bool is_held(const AlgorithmConfig& config) const {
    return family_ ? family_of(config) == family_of(*held_) : config == *held_;
  }

  bool family_;  // true: configs that differ only in channels or segments count as the same
  bool changed_ = false;
  std::optional<AlgorithmConfig> held_;
};

}  // namespace trellis::schedule
