#include <fmt/format.h>

#include <algorithm>

#include "sim/hardware/timeline/format_quantities.h"
#include "tools/layouts/layout_search_report.h"
#include "tools/picture/axes.h"
#include "tools/picture/palette.h"
#include "tools/picture/svg.h"

namespace trellis::tools {
namespace {

using draw::Point;

constexpr double left = 92, top = 56, width = 640, height = 380, right = 200, below = 64, line = 18;

}  // namespace

std::string front_picture(const std::vector<SearchedMachine>& all) {
  double least = 1e300, most = 0, soonest = 1e300, latest = 0;
  for (const SearchedMachine& m : all)
    for (const PricedLayout& l : m.search.layouts) {
      if (l.time == 0) continue;
      least = std::min(least, l.memory), most = std::max(most, l.memory);
      soonest = std::min(soonest, sim::in_seconds(l.time)), latest = std::max(latest, sim::in_seconds(l.time));
    }
  if (most == 0) least = soonest = 1, most = latest = 2;
  const draw::PlotAxis x = draw::power_axis(least, most * 1.01, 2, 9, left, left + width);
  const draw::PlotAxis y = draw::power_axis(soonest, latest * 1.01, 2, 9, top + height, top);
  draw::Svg svg(left + width + right, top + height + below, draw::chart_style, "Layouts by memory and time");
  svg.text({left, top - 24}, fmt::format("{}: a step's time and a rank's memory", all[0].config.name),
           "font-size=\"14\" font-weight=\"600\"");
  draw::draw_grid(
      svg, x, [](double v) { return sim::bytes_words(v); }, y,
      [](double v) { return sim::time_words(static_cast<sim::Time>(v * 1e12)); });
  svg.rect({left, top}, {width, height}, 0, "class=\"frame\"");
  svg.text({left + width / 2, top + height + 48}, "memory of a rank", "font-size=\"11\" text-anchor=\"middle\"");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const SearchedMachine& m = all[i];
    const draw::Ink& ink = draw::ink(static_cast<std::int64_t>(i));
    for (const PricedLayout& l : m.search.layouts) {
      if (l.time == 0) continue;
      svg.open("layout",
               fmt::format("{}: {}, {}", words_of(l.layout), sim::time_words(l.time), sim::bytes_words(l.memory)));
      svg.circle({x.at(l.memory), y.at(sim::in_seconds(l.time))}, 3,
                 fmt::format("fill=\"{}\" fill-opacity=\"{}\"", ink.colour, l.fits ? ".45" : ".12"));
      svg.close();
    }
    std::vector<Point> points;
    for (const PricedLayout* l : m.search.front()) points.push_back({x.at(l->memory), y.at(sim::in_seconds(l->time))});
    svg.open("front", fmt::format("{}: no other is faster in less memory", m.name));
    if (points.size() > 1) svg.path(draw::through(points), fmt::format("class=\"curve\" stroke=\"{}\"", ink.colour));
    svg.close();
    if (const double limit = m.search.memory_of_rank; limit >= x.low && limit <= x.high) {
      svg.open("limit", fmt::format("{}: {} a rank", m.name, sim::bytes_words(limit)));
      svg.line({x.at(limit), top}, {x.at(limit), top + height},
               fmt::format("class=\"dashed\" stroke=\"{}\"", ink.colour));
      svg.close();
    }
    const double at = top + 12 + line * static_cast<double>(i);
    svg.circle({left + width + 18, at - 4}, 4, fmt::format("fill=\"{}\"", ink.colour));
    svg.text({left + width + 28, at}, m.name, "font-size=\"11\"");
  }
  return std::move(svg).finish();
}

}  // namespace trellis::tools
