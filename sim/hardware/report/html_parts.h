// The parts of a report's HTML page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/timeline/summary.h"
#include "sim/hardware/timeline/timeline_layout.h"

namespace trellis::sim {

// A span, or several short neighbouring ones of one row.
struct MergedSpan {
  std::uint32_t row = 0;
  std::uint32_t span = 0;   // the first of them
  std::uint32_t count = 1;  // in TimelineLayout::order, from the first on
  Time start = 0, end = 0;
  Time busy = 0;
};

struct MergedSpans {
  std::vector<MergedSpan> blocks;  // by row, then start
  std::vector<std::uint32_t> of;   // the block of each span
  Time shorter = 0;                // spans shorter than this were merged with their neighbours; 0: none were
  std::size_t merged = 0;          // spans that are not drawn as blocks of their own
};

MergedSpans blocks_of(const Timeline&, const TimelineLayout&, std::size_t most);

// The data that the page's script draws: columns with one entry for each block.
std::string report_data(const Timeline&, const TimelineLayout&, const MergedSpans&, const Summary&);

std::string escaped_html(std::string_view);
std::string roofline_svg(const Summary&);  // empty if there is nothing to plot

// The files of report/web.
extern const std::string_view report_style;   // page.css
extern const std::string_view report_body;    // page.html: the timeline's controls and canvas, below the heading
extern const std::string_view report_script;  // timeline.js: draws it
extern const std::string_view report_input;   // input.js: pointer, keys, search

}  // namespace trellis::sim
