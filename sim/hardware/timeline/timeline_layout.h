// Lays a timeline out in rows for drawing: tracks by group, with further rows where spans of a track overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/hardware/timeline/timeline.h"

namespace trellis::sim {

struct TimelineRow {
  std::uint32_t group = 0;
  std::uint32_t track = 0;
  std::uint32_t lane = 0;  // 0: the track's first row
};

struct TimelineLayout {
  std::vector<std::string> groups;            // in the order in which tracks and counters name them
  std::vector<std::uint32_t> counter_groups;  // of each counter
  std::vector<TimelineRow> rows;              // by group, track and lane; spans of one row do not overlap
  std::vector<std::uint32_t> row_of;          // of each span
  std::vector<std::uint32_t> order;           // spans by row, then by start
};

// Throws invalid_argument for a span or sample with an unknown track, counter or label, or that ends before it begins.
TimelineLayout rows_of(const Timeline&);

std::string row_name(const Timeline&, const TimelineRow&);  // "queue 3", "queue 3 (2)"

}  // namespace trellis::sim
