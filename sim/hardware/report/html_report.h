// Writes a timeline as one HTML page that needs no network: a timeline to zoom into, the critical path, tables, the
// roofline.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/hardware/timeline/summary.h"
#include "sim/hardware/timeline/timeline.h"

namespace trellis::sim {

struct ReportOptions {
  std::string title = "timeline";
  std::string introduction = {};                                  // HTML between the heading and the timeline
  std::vector<std::pair<std::string, std::string>> made_by = {};  // what made it, at the page's end
  std::string scope = {};  // which ranks the totals cover if a run is folded: "1 of 256 ranks"; empty: all
  bool path = true;        // show the table of the critical path; false: the introduction has it
  HardwarePeaks peaks = {};
  std::size_t most_blocks = 200'000;  // limit; beyond it the shortest spans are merged, and the page says so
  std::size_t most_tracks = 200;      // in the table
};

std::string html_report(const Timeline&, const ReportOptions& = {});

}  // namespace trellis::sim
