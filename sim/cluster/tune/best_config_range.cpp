#include "sim/cluster/tune/best_config_range.h"

#include <algorithm>
#include <span>

#include "schedule/algorithms/size_range_tuner.h"

namespace trellis::sim {

std::vector<BestConfigRange> regions_of(std::vector<ConfigCost> costs, bool family) {
  std::ranges::stable_sort(costs, [](const ConfigCost& a, const ConfigCost& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.time != b.time ? a.time < b.time : a.config < b.config;
  });
  std::vector<BestConfigRange> regions;
  schedule::SizeRangeTuner<ConfigCost> tuner(family);
  for (std::size_t begin = 0, end = 0; begin < costs.size(); begin = end) {
    while (end < costs.size() && costs[end].bytes == costs[begin].bytes) ++end;
    const ConfigCost* const best = tuner.chosen(std::span(costs).subspan(begin, end - begin));
    if (tuner.changed()) regions.push_back({regions.empty() ? 0 : best->bytes, best->config, best->time, best->bytes});
  }
  return regions;
}

}  // namespace trellis::sim
