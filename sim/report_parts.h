// The parts that a report's page is put together from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/summary.h"
#include "sim/timeline_rows.h"

namespace trellis::sim {

// A span, or several short ones that lie side by side in one row.
struct Block {
  std::uint32_t row = 0;
  std::uint32_t span = 0;   // the first of them
  std::uint32_t count = 1;  // in Rows::order, from the first on
  Time start = 0, end = 0;
  Time busy = 0;
};

struct Blocks {
  std::vector<Block> blocks;      // by row, then start
  std::vector<std::uint32_t> of;  // of each span
  Time shorter = 0;               // spans shorter than this were merged with their neighbours; 0: none were
  std::size_t merged = 0;         // spans that are not drawn by themselves
};

Blocks blocks_of(const Timeline&, const Rows&, std::size_t most);

// What the page's script draws: columns, one entry a block.
std::string report_data(const Timeline&, const Rows&, const Blocks&, const Summary&);

std::string escaped_html(std::string_view);
std::string roofline_svg(const Summary&);  // empty when there is nothing to place

extern const std::string_view report_style;
extern const std::string_view report_body;    // below the heading: the timeline's controls and its place
extern const std::string_view report_script;  // draws the timeline
extern const std::string_view report_input;   // pointer, keys, search

}  // namespace trellis::sim
