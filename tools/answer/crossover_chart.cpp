#include "tools/answer/crossover_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "tools/picture/axes.h"
#include "tools/picture/palette.h"
#include "tools/picture/svg.h"

namespace trellis::tools {
namespace {

using draw::Point;
using draw::Svg;

constexpr double left = 76, least_right = 170, width = 640, height = 320, top = 96, between = 76, legend_line = 18;
constexpr double label_letter = 6, legend_letter = 7;  // widths of letters of sizes 10 and 11, rather too wide
constexpr std::size_t most_lines = 10;                 // more would be unreadable: the slowest are left out

using Line = std::map<double, sim::Time>;  // time by bytes

std::map<std::string, Line> lines_of(const std::vector<sim::ConfigCost>& costs) {
  std::map<std::string, Line> lines;
  for (const sim::ConfigCost& c : costs) {
    sim::Time& best = lines[sim::family_of(c.config)].try_emplace(c.bytes, c.time).first->second;
    best = std::min(best, c.time);
  }
  return lines;
}

// The algorithms by their least distance from the best at any size: those that are the best somewhere come first. At
// most most_lines of them.
std::vector<std::string> nearest_first(const std::map<std::string, Line>& lines) {
  Line best;
  for (const auto& [name, line] : lines)
    for (const auto& [bytes, time] : line) {
      sim::Time& least = best.try_emplace(bytes, time).first->second;
      least = std::min(least, time);
    }
  std::map<std::string, double> distance;
  for (const auto& [name, line] : lines) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [bytes, time] : line)
      least = std::min(least, static_cast<double>(time) / static_cast<double>(best[bytes]));
    distance[name] = least;
  }
  std::vector<std::string> names;
  for (const auto& [name, far] : distance) names.push_back(name);
  std::ranges::stable_sort(names, [&](const auto& a, const auto& b) { return distance[a] < distance[b]; });
  names.resize(std::min(names.size(), most_lines));
  return names;
}

struct Panel {
  double y = 0;
  draw::PlotAxis bytes, time;  // picoseconds
};

Panel panel_over(const std::map<std::string, Line>& lines, const std::vector<std::string>& names, double y) {
  double least = 1e300, most = 0, soonest = 1e300, latest = 0;
  for (const std::string& name : names)
    for (const auto& [bytes, time] : lines.at(name)) {
      const auto t = static_cast<double>(std::max<sim::Time>(time, 1));
      least = std::min(least, bytes), most = std::max(most, bytes);
      soonest = std::min(soonest, t), latest = std::max(latest, t);
    }
  most = std::max(most, least * 2);
  const double step = std::exp2(std::ceil(std::log2(most / least) / 9));
  return {y, {least, most, left, left + width, step, true}, draw::power_axis(soonest, latest, 10, 100, y + height, y)};
}

void draw_regions(Svg& svg, const Panel& p, const std::vector<sim::BestConfigRange>& regions,
                  const std::map<std::string, draw::Ink>& inks) {
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const std::string name = sim::family_of(regions[i].config);
    const double from = p.bytes.at(regions[i].from);
    const double to = i + 1 < regions.size() ? p.bytes.at(regions[i + 1].from) : left + width;
    const auto ink = inks.find(name);
    svg.open("chosen", fmt::format("{} from {}", name, sim_bytes_text(regions[i].from)));
    svg.rect({from, p.y}, {to - from, height}, 0,
             fmt::format("class=\"region\" fill=\"{}\"", ink == inks.end() ? "#888" : ink->second.colour));
    svg.close();
    if (to - from > 30)
      svg.text({(from + to) / 2, p.y - 8}, name, "font-size=\"11\" font-weight=\"600\" text-anchor=\"middle\"");
    if (i > 0)
      svg.text({from, p.y + height + 30}, sim_bytes_text(regions[i].from), "font-size=\"10\" text-anchor=\"middle\"");
  }
}

// Draws the published regions as a strip along the bottom of the panel.
void draw_published(Svg& svg, const Panel& p, const std::vector<PublishedSizeRange>& regions,
                    const std::map<std::string, draw::Ink>& inks) {
  constexpr double strip = 18;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const double from = p.bytes.at(regions[i].from);
    const double to = i + 1 < regions.size() ? p.bytes.at(regions[i + 1].from) : left + width;
    const auto ink = inks.find(regions[i].name);
    svg.open("published", fmt::format("{} from {}", regions[i].name, sim_bytes_text(regions[i].from)));
    svg.rect({from, p.y + height - strip}, {to - from, strip}, 0,
             fmt::format("fill=\"{}\" fill-opacity=\".45\"", ink == inks.end() ? "#888" : ink->second.colour));
    svg.close();
    const std::string label = "published: " + regions[i].name;
    const double half = label_letter / 2 * static_cast<double>(label.size());
    svg.text({std::clamp((from + to) / 2, left + half, left + width - half), p.y + height - 5}, label,
             "font-size=\"10\" text-anchor=\"middle\"");
  }
}

// The width that the longest name in the legends needs.
double legend_width(const std::vector<CrossoverChart>& charts) {
  std::size_t longest = 0;
  for (const CrossoverChart& chart : charts)
    for (const std::string& name : nearest_first(lines_of(chart.costs))) longest = std::max(longest, name.size());
  return 38 + legend_letter * static_cast<double>(longest) + 10;
}

void draw_panel(Svg& svg, const CrossoverChart& chart, double y) {
  const auto lines = lines_of(chart.costs);
  const auto names = nearest_first(lines);
  const Panel p = panel_over(lines, names, y);
  std::map<std::string, draw::Ink> inks;
  for (std::size_t i = 0; i < names.size(); ++i) inks[names[i]] = draw::ink(static_cast<std::int64_t>(i));
  svg.text({left, y - 26}, chart.title, "font-size=\"13\" font-weight=\"600\"");
  draw_regions(svg, p, chart.regions, inks);
  draw::draw_grid(svg, p.bytes, sim_bytes_text, p.time,
                  [](double t) { return sim_time_text(static_cast<sim::Time>(t)); });
  draw_published(svg, p, chart.published, inks);
  svg.rect({left, y}, {width, height}, 0, "class=\"frame\"");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const draw::Ink& ink = inks[names[i]];
    const std::string stroke =
        fmt::format("class=\"curve{}\" stroke=\"{}\"", ink.outlined ? " dashed" : "", ink.colour);
    std::vector<Point> points;
    for (const auto& [bytes, time] : lines.at(names[i]))
      points.push_back({p.bytes.at(bytes), p.time.at(static_cast<double>(std::max<sim::Time>(time, 1)))});
    svg.open("series", names[i]);
    svg.path(draw::through(points), stroke);
    svg.close();
    const double at = y + 12 + legend_line * static_cast<double>(i);
    svg.line({left + width + 12, at - 4}, {left + width + 32, at - 4}, stroke);
    svg.text({left + width + 38, at}, names[i], "font-size=\"11\"");
  }
}

}  // namespace

std::string sim_time_text(sim::Time t) {
  constexpr std::array<std::pair<double, const char*>, 4> units{{{1e3, "ns"}, {1e6, "us"}, {1e9, "ms"}, {1e12, "s"}}};
  const auto value = static_cast<double>(t);
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value >= units[unit + 1].first * 0.9995) ++unit;
  return fmt::format("{:.4g} {}", value / units[unit].first, units[unit].second);
}

std::string sim_bytes_text(double bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); bytes /= 1024) ++unit;
  return fmt::format("{:.4g} {}", bytes, units[unit]);
}

std::string tune_chart(const std::string& machine, const std::vector<CrossoverChart>& charts) {
  if (charts.empty() || std::ranges::any_of(charts, [](const CrossoverChart& c) { return c.costs.empty(); }))
    throw std::invalid_argument("nothing to draw: no point of the sweep is done");
  const double all = top + static_cast<double>(charts.size()) * (height + between) + 10;
  Svg svg(left + width + std::max(least_right, legend_width(charts)), all, draw::chart_style,
          "crossover of algorithms on " + machine);
  svg.text({26, 34}, machine, "font-size=\"18\" font-weight=\"600\"");
  svg.text({26, 54}, "simulated time over the size of the larger buffer; shaded: which algorithm is chosen",
           "class=\"dim\" font-size=\"12\"");
  for (std::size_t i = 0; i < charts.size(); ++i)
    draw_panel(svg, charts[i], top + 14 + static_cast<double>(i) * (height + between));
  return std::move(svg).finish();
}

}  // namespace trellis::tools
