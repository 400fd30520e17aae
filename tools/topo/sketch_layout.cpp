#include "tools/topo/sketch_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace trellis::tools {
namespace {

constexpr double label_height = 22, line_height = 16;

std::string_view class_of(DrawnShape::Kind kind) {
  constexpr std::string_view all[] = {"chip", "unit", "box", "node", "port", "core", "rank", "free"};
  return all[static_cast<std::size_t>(kind)];
}

void draw_words(draw::Svg& svg, const DrawnShape& s) {
  if (s.kind == DrawnShape::Kind::unit) return svg.text({s.at.x + 10, s.at.y + 15}, s.label, "class=\"dim\"");
  for (std::size_t i = 0; i < s.lines.size(); ++i)
    svg.text({s.at.x + 8, s.at.y + line_height * static_cast<double>(i + 1)}, s.lines[i],
             i == 0 ? "font-weight=\"600\"" : "class=\"dim\"");
  if (s.label.empty()) return;
  const double middle = s.at.x + s.size.x / 2, y = s.at.y + s.size.y / 2 + (s.below.empty() ? 4 : -1);
  svg.text({middle, y}, s.label, "text-anchor=\"middle\"" + s.ink);
  if (!s.below.empty())
    svg.text({middle, s.at.y + s.size.y - 6}, s.below, "class=\"small dim\" text-anchor=\"middle\"");
}

}  // namespace

void Sketch::add(Sketch other, Point at) {
  const auto moved = [&](Point p) { return Point{p.x + at.x, p.y + at.y}; };
  for (DrawnShape& s : other.shapes) s.at = moved(s.at);
  for (DrawnWire& w : other.wires)
    for (Point& p : w.points) p = moved(p);
  for (PlacedText& w : other.words) w.at = moved(w.at);
  std::ranges::move(other.shapes, std::back_inserter(shapes));
  std::ranges::move(other.wires, std::back_inserter(wires));
  std::ranges::move(other.words, std::back_inserter(words));
  size.x = std::max(size.x, at.x + other.size.x);
  size.y = std::max(size.y, at.y + other.size.y);
}

Sketch in_rows(std::vector<Sketch> all, double gap, double most_wide) {
  Sketch s;
  double x = 0, y = 0;
  for (Sketch& one : all) {
    if (x > 0 && x + one.size.x > most_wide) x = 0, y = s.size.y + gap;
    const double wide = one.size.x;
    s.add(std::move(one), {x, y});
    x += wide + gap;
  }
  return s;
}

Sketch in_grid(std::vector<Sketch> all, std::size_t across, double gap, double margin, std::vector<Point>& corners) {
  std::vector<double> wide(across), high((all.size() + across - 1) / across);
  for (std::size_t i = 0; i < all.size(); ++i) {
    wide[i % across] = std::max(wide[i % across], all[i].size.x);
    high[i / across] = std::max(high[i / across], all[i].size.y);
  }
  Sketch s;
  Point at{margin, margin};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double w = wide[i % across], h = high[i / across];
    corners.push_back({at.x + (w - all[i].size.x) / 2, at.y + (h - all[i].size.y) / 2});
    s.add(std::move(all[i]), corners.back());
    at.x += w + gap;
    if ((i + 1) % across == 0) at = {margin, at.y + h + gap};
  }
  s.size.x += margin, s.size.y += margin;
  return s;
}

Sketch in_frame(Sketch inner, const std::string& label, double padding) {
  const double top = label.empty() ? padding : label_height;
  Sketch s{.size = {inner.size.x + 2 * padding, inner.size.y + top + padding}};
  s.shapes.push_back({.kind = DrawnShape::Kind::unit, .at = {}, .size = s.size, .label = label, .below = ""});
  s.add(std::move(inner), {padding, top});
  return s;
}

void draw_shape(draw::Svg& svg, const DrawnShape& s) {
  svg.open(s.group, s.title);
  svg.rect(s.at, s.size, s.kind == DrawnShape::Kind::port ? 1 : 5,
           fmt::format("class=\"{}{}\"{}", class_of(s.kind), s.css, s.fill));
  draw_words(svg, s);
  svg.close();
}

}  // namespace trellis::tools
