// The crossover chart: the time of each algorithm against size, both axes logarithmic, with the range of sizes for
// which each is chosen.
#pragma once

#include <string>
#include <vector>

#include "sim/cluster/tune/best_config_range.h"

namespace trellis::tools {

struct PublishedSizeRange {
  std::string name;
  double from = 0;  // bytes
};

struct CrossoverChart {
  std::string title;  // "all_reduce on 64 ranks"
  std::vector<sim::ConfigCost>
      costs;  // of any configs; an algorithm's curve is the best over its channels and segments
  std::vector<sim::BestConfigRange> regions;
  std::vector<PublishedSizeRange> published = {};  // published by others, for the real machine
};

// One panel for each chart, one below the other, as SVG. Throws invalid_argument when there is nothing to draw.
std::string tune_chart(const std::string& machine, const std::vector<CrossoverChart>&);

std::string sim_time_text(sim::Time);  // "12.3 us"
std::string sim_bytes_text(double);    // "1.5 MiB"

}  // namespace trellis::tools
