// A timeline as one HTML page that needs no network: the timeline to zoom into, the critical path, tables, the
// roofline.
#pragma once

#include <cstddef>
#include <string>

#include "sim/summary.h"
#include "sim/timeline.h"

namespace trellis::sim {

struct ReportOptions {
  std::string title = "timeline";
  std::string introduction = {};  // HTML, put between the heading and the timeline
  Peaks peaks = {};
  std::size_t most_blocks = 200'000;  // drawn; of more spans the shortest are merged, and the page says so
  std::size_t most_tracks = 200;      // in the table
};

std::string html_report(const Timeline&, const ReportOptions& = {});

}  // namespace trellis::sim
