// The crossover chart: the time of each algorithm over sizes, both axes logarithmic, and who is chosen where.
#pragma once

#include <string>
#include <vector>

#include "sim/tuner.h"

namespace trellis::tools {

struct PublishedRegion {
  std::string name;
  double from = 0;  // bytes
};

struct TuneChart {
  std::string title;             // "all_reduce on 64 ranks"
  std::vector<sim::Cost> costs;  // of any ways; an algorithm's line is the best of its lanes and parts
  std::vector<sim::Region> regions;
  std::vector<PublishedRegion> published = {};  // by others, on the real machine
};

// A panel for each, one below the other, as SVG. Throws invalid_argument when there is nothing to draw.
std::string tune_chart(const std::string& machine, const std::vector<TuneChart>&);

std::string sim_time_text(sim::Time);  // "12.3 us"
std::string sim_bytes_text(double);    // "1.5 MiB"

}  // namespace trellis::tools
