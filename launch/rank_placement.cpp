#include "launch/rank_placement.h"

#include <algorithm>
#include <utility>

#include "kernels/dispatch/cpu_quota.h"

namespace trellis::launch {

std::vector<RankPlace> places_for(const TopoMachine& host, int ranks, Pin pin, double quota) {
  const auto cores = static_cast<int>(usable_cores(host.whole).size());
  const int each = std::max(1, kernels::within_quota(cores, quota) / std::max(1, ranks));
  std::vector<RankPlace> places;
  // A single rank is not pinned: if it were pinned to all cores, it would not use cores that are added later.
  if (host.here && pin == Pin::share && ranks > 1 && !(quota < cores))
    for (auto& threads : rank_threads(host, ranks, CoreAllocationPolicy::equal))
      places.push_back({std::move(threads), each});
  if (host.here && pin == Pin::core && ranks <= cores)
    for (auto& threads : rank_threads(host, ranks, CoreAllocationPolicy::one)) places.push_back({std::move(threads)});
  if (host.here && pin == Pin::core && ranks > cores)
    for (const int thread : threads_in_turn(host)) places.push_back({{thread}});
  if (places.empty()) places.push_back({.cores = each});
  return places;
}

}  // namespace trellis::launch
