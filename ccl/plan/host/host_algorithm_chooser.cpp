#include "ccl/plan/host/host_algorithm_chooser.h"

#include <algorithm>
#include <bit>

#include "ccl/plan/planner.h"
#include "schedule/algorithms/algorithm.h"

namespace trellis::ccl {
namespace {

using schedule::AlgorithmConfig;

// Joining more steps would take longer than the choice may gain.
constexpr std::size_t most_steps = 512, most_steps_per_rank = 6;
constexpr std::size_t refined = 3;  // best plain configs, of different times, for which channels and segments are tried
constexpr std::size_t least_refined_bytes = std::size_t{16} << 10;
struct Lanes {
  std::int32_t channels, segments;
};
constexpr Lanes lanes_tried[] = {{1, 2}, {1, 4}, {2, 1}, {2, 2}, {4, 1}, {4, 4}};
constexpr std::size_t most_kept = 256;

// Keeps the two highest bits: 24 for 25, 32 for 47.
std::size_t rounded(std::size_t count) {
  const auto width = static_cast<int>(std::bit_width(count));
  return width <= 2 ? count : count >> (width - 2) << (width - 2);
}

// Keeps the first of those with equal times, which are mostly one schedule under several names.
std::vector<PredictedTime> best_of(const std::vector<PredictedTime>& sorted) {
  std::vector<PredictedTime> best;
  for (const PredictedTime& p : sorted) {
    if (best.size() == refined) break;
    if (best.empty() || p.product() > best.back().product()) best.push_back(p);
  }
  return best;
}

void sort_by_time(std::vector<PredictedTime>& all) { std::ranges::stable_sort(all, {}, &PredictedTime::product); }

}  // namespace

HostAlgorithmChooser::HostAlgorithmChooser(Rank ranks, TransportCapabilities paths, RankCores places,
                                           const HostCosts& costs)
    : ranks_(ranks), paths_(paths), places_(std::move(places)), costs_(costs) {}

bool modelled(Collective c) { return !schedule::uneven(c) && c != Collective::permute && c != Collective::send_recv; }

bool HostAlgorithmChooser::models(Collective c) const { return places_.cores > 0 && ranks_ > 1 && modelled(c); }

// Every algorithm over one row of ranks; those with dimensions or levels also over every two factors of the number of
// ranks.
std::vector<AlgorithmConfig> HostAlgorithmChooser::plain_configs(Collective collective) const {
  static const std::vector<std::string> levels[] = {
      {"direct", "direct"}, {"direct", "recursive_doubling"}, {"mesh", "mesh"}, {"mesh", "halving_doubling"}};
  std::vector<AlgorithmConfig> all;
  for (const auto& [name, algorithm] : schedule::algorithms()) {
    if (std::ranges::find(algorithm.serves, collective) == algorithm.serves.end()) continue;
    all.push_back({.algorithm = name});
    if (algorithm.dims != schedule::UseOfDims::shape) continue;
    for (Rank inner = 2; inner <= ranks_ / 2; ++inner) {
      if (ranks_ % inner != 0) continue;
      AlgorithmConfig shaped{.algorithm = name, .dims = {inner, ranks_ / inner}};
      if (!algorithm.has_levels)
        all.push_back(std::move(shaped));
      else
        for (const auto& pair : levels) {
          shaped.levels = pair;
          all.push_back(shaped);
        }
    }
  }
  return all;
}

std::optional<PredictedTime> HostAlgorithmChooser::predicted(const AlgorithmConfig& config, const Call& call) const {
  const auto joined = [&](bool hidden) {
    return join_programs(config, call, ranks_, places_, paths_, hidden,
                         std::max(most_steps, most_steps_per_rank * static_cast<std::size_t>(ranks_)));
  };
  const auto time = [&](const JoinedPrograms& programs, bool readable) {
    return predicted_time(programs, call, ranks_, places_, costs_, readable);
  };
  const auto plain = joined(false);
  if (!plain) return {};
  const auto staged = worth_showing(call, ranks_) ? joined(true) : std::nullopt;
  return PredictedTime{config, time(*plain, true), time(staged ? *staged : *plain, false)};
}

std::vector<PredictedTime> HostAlgorithmChooser::rank_all(const Call& call) const {
  std::vector<PredictedTime> all;
  const auto add = [&](const AlgorithmConfig& config) {
    if (auto p = predicted(config, call)) all.push_back(std::move(*p));
  };
  for (const AlgorithmConfig& config : plain_configs(call.operation.collective)) add(config);
  sort_by_time(all);
  if (larger_bytes(call, ranks_) < least_refined_bytes) return all;
  for (const PredictedTime& plain : best_of(all))
    for (const Lanes& lanes : lanes_tried) {
      AlgorithmConfig config = plain.config;
      config.channels = lanes.channels, config.segments = lanes.segments;
      add(config);
    }
  sort_by_time(all);
  return all;
}

const std::vector<PredictedTime>& HostAlgorithmChooser::ranked(const Call& call) {
  const std::tuple key{call.operation.collective, rounded(call.count), call.type};
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if (known_.size() == most_kept) known_.clear();
  return known_
      .emplace(key, rank_all({.operation = {.collective = call.operation.collective},
                              .count = rounded(call.count),
                              .type = call.type}))
      .first->second;
}

}  // namespace trellis::ccl
