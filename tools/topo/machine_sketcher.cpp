#include "tools/topo/machine_sketcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace trellis::tools {
namespace {

constexpr Point chip_size{44, 36}, box_size{118, 54};
constexpr double between_chips = 26, between_units = 40, margin = 18, letter = 6.4;
constexpr Chip most_in_full = 100;  // chips that are all drawn
constexpr Chip most_on_circle = 32;

// Where a line from the middle of a rectangle of this size towards a point crosses its edge.
Point edge(Point middle, Point size, Point towards) {
  const double x = towards.x - middle.x, y = towards.y - middle.y;
  const double part = std::min(x == 0 ? 1 : size.x / 2 / std::abs(x), y == 0 ? 1 : size.y / 2 / std::abs(y));
  return {middle.x + part * x, middle.y + part * y};
}

Point centre(const DrawnShape& s) { return {s.at.x + s.size.x / 2, s.at.y + s.size.y / 2}; }

// The line from one unit of a grid to the next along an axis: 0 across, 1 down.
std::vector<Point> straight(std::size_t axis, const DrawnShape& a, const DrawnShape& b) {
  const Point from = centre(a), to = centre(b);
  if (axis == 0) return {{a.at.x + a.size.x, from.y}, {b.at.x, to.y}};
  return {{from.x, a.at.y + a.size.y}, {to.x, b.at.y}};
}

// The line that closes a ring, from the first unit to the last one, round the outside.
std::vector<Point> closing(std::size_t axis, const DrawnShape& a, const DrawnShape& b) {
  const Point from = centre(a), to = centre(b);
  const double right = b.at.x + b.size.x, bottom = b.at.y + b.size.y;
  if (axis == 0)
    return {{a.at.x, from.y},          {a.at.x - 15, from.y}, {a.at.x - 15, a.at.y - 13},
            {right + 13, a.at.y - 13}, {right + 13, to.y},    {right, to.y}};
  return {{from.x, a.at.y},         {from.x, a.at.y - 7}, {a.at.x - 7, a.at.y - 7},
          {a.at.x - 7, bottom + 8}, {to.x, bottom + 8},   {to.x, bottom}};
}

}  // namespace

std::vector<Chip> kept(Chip count, Chip most) {
  std::vector<Chip> all;
  for (Chip i = 0; i < count; ++i)
    if (count <= most || i < most - 1 || i == count - 1) all.push_back(i);
  return all;
}

Sketch MachineSketcher::whole() const { return unit(plan_.layers().size(), 0, true); }

bool MachineSketcher::all_full(std::size_t layer) const { return plan_.layers()[layer].chips() <= most_in_full; }

Sketch MachineSketcher::unit(std::size_t layers, Chip first, bool full) const {
  if (layers == 0) return chip(first);
  if (!full) return box(layers, first);
  const FabricLayer& layer = plan_.layers()[layers - 1];
  const std::string& kind = layer.level.kind;
  const bool chips = layer.inner() == 1, row = layer.fabric->dims().size() == 1;
  const Chip size = layer.fabric->size();
  if (kind == "dragonfly") return dragonfly(layers - 1, first);
  if (kind == "full" || kind == "links" ||
      (kind != "mesh" && chips && row && size > 2 && size <= most_on_circle && layer.level.kind != "switch" &&
       plan_.below(layer).empty()))
    return circle(layers - 1, first);
  if (!plan_.below(layer).empty()) return tree(layers - 1, first);
  return chips && layer.fabric->dims().size() == 3 ? cube(layers - 1, first) : torus(layers - 1, first);
}

Sketch MachineSketcher::chip(Chip number) const {
  Sketch s{.size = chip_size};
  const bool several = plan_.machine().cores() > 1;
  s.shapes.push_back({.kind = DrawnShape::Kind::chip,
                      .at = {},
                      .size = chip_size,
                      .label = std::to_string(number),
                      .below = several ? plan_.ranks_words(number) : "",
                      .title = several ? fmt::format("chip {}, ranks {}", number, plan_.ranks_words(number))
                                       : fmt::format("chip {}", number),
                      .inside = plan_.engines(number)});
  return s;
}

Sketch MachineSketcher::box(std::size_t layers, Chip first) const {
  const Chip count = plan_.layers()[layers - 1].chips();
  Sketch s{.size = box_size};
  const std::string label = fmt::format("chips {}-{}", first, first + count - 1);
  s.size.x = std::max(s.size.x, letter * static_cast<double>(label.size()) + 20);
  s.shapes.push_back({.kind = DrawnShape::Kind::box,
                      .at = {},
                      .size = s.size,
                      .label = label,
                      .below = "as the first",
                      .title = label,
                      .inside = plan_.within(layers, first, count)});
  return s;
}

Sketch MachineSketcher::framed(Sketch inner, std::size_t layers, Chip first) const {
  const Chip count = plan_.layers()[layers - 1].chips();
  return in_frame(std::move(inner), fmt::format("chips {}-{}", first, first + count - 1), 12);
}

std::vector<Chip> MachineSketcher::strides(const FabricLayer& layer) const {
  std::vector<Chip> all{layer.inner()};
  for (Chip d : layer.fabric->dims()) all.push_back(all.back() * d);
  return all;
}

// The links between neighbouring units of a torus along an axis, in both directions. An axis of 2 has one port, with
// which both units send.
DrawnWire MachineSketcher::neighbours(std::size_t at, Chip from, Chip to, std::size_t axis) const {
  const FabricLayer& layer = plan_.layers()[at];
  DrawnWire wire{.points = {}, .resources = {}, .layer = static_cast<int>(at), .bundle = layer.inner() > 1};
  const auto& dims = layer.fabric->dims();
  const bool two = dims[axis] == 2;
  std::size_t port = 0;
  for (std::size_t a = 0; a < axis; ++a) port += dims[a] == 2 ? 1 : 2;
  for (Chip k = 0; k < layer.inner(); ++k)
    for (std::size_t back = 0; back < 2; ++back) {
      const std::string& name = layer.fabric->ports()[port + (two ? 0 : back)].name;
      wire.resources.push_back(
          plan_.port(layer, name.substr(layer.level.name.size() + 1), (back == 0 ? from : to) + k));
    }
  return wire;
}

Sketch MachineSketcher::placed(std::size_t at, Grid& grid) const {
  const bool full = all_full(at);
  const double gap = plan_.layers()[at].inner() == 1 ? between_chips : between_units;
  const std::size_t across = grid.xs.size();
  std::vector<Sketch> units;
  for (std::size_t i = 0; i < across * grid.ys.size(); ++i) {
    const Chip first = grid.chip(i % across, i / across);
    const bool in_full = full || i == 0;
    Sketch one = unit(at, first, in_full);
    if (at > 0 && in_full) one = framed(std::move(one), at, first);
    grid.frames.push_back({.at = {}, .size = one.size, .label = "", .below = ""});
    units.push_back(std::move(one));
  }
  std::vector<Point> corners;
  Sketch s = in_grid(std::move(units), across, gap, margin, corners);
  for (std::size_t i = 0; i < corners.size(); ++i) grid.frames[i].at = corners[i];
  return s;
}

// A grid of its first two dimensions; links that close rings run round the outside. One plane of any
// further dimensions is drawn.
Sketch MachineSketcher::torus(std::size_t at, Chip first) const {
  const FabricLayer& layer = plan_.layers()[at];
  const auto& dims = layer.fabric->dims();
  const bool closed = layer.level.kind != "mesh";
  const Chip most = layer.inner() == 1 ? 16 : 6;
  const auto stride = strides(layer);
  Grid grid{first, {stride[0], stride[1]}, kept(dims[0], most), kept(dims.size() > 1 ? dims[1] : 1, most), {}};
  Sketch s = placed(at, grid);
  // Draws the links along one axis: those of every row that is parallel to it.
  const auto join = [&](std::size_t axis) {
    const std::vector<Chip>&along = axis == 0 ? grid.xs : grid.ys, &rows = axis == 0 ? grid.ys : grid.xs;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto x = [&](std::size_t i) { return axis == 0 ? i : row; };
      const auto y = [&](std::size_t i) { return axis == 0 ? row : i; };
      for (std::size_t i = 0; i < along.size(); ++i) {
        const bool last = i + 1 == along.size();
        if (last && (!closed || dims[axis] <= 2)) continue;
        const std::size_t next = last ? 0 : i + 1;
        DrawnWire wire = neighbours(at, grid.chip(x(i), y(i)), grid.chip(x(next), y(next)), axis);
        const DrawnShape &a = grid.frame(x(i), y(i)), &b = grid.frame(x(next), y(next));
        wire.points = last ? closing(axis, b, a) : straight(axis, a, b);
        wire.cut = !last && along[next] != along[i] + 1;
        s.wires.push_back(std::move(wire));
      }
    }
  };
  join(0);
  if (dims.size() > 1) join(1);
  for (std::size_t axis = 2; axis < dims.size(); ++axis) {
    s.size.y += 16;
    s.words.push_back({{margin, s.size.y - 4},
                       fmt::format("and {} more such planes along dimension {}", dims[axis] - 1, axis + 1),
                       false});
  }
  return s;
}

// Planes behind each other, in parallel projection; short stubs mark links round to the other side.
Sketch MachineSketcher::cube(std::size_t at, Chip first) const {
  const FabricLayer& layer = plan_.layers()[at];
  const auto& dims = layer.fabric->dims();
  const bool closed = layer.level.kind != "mesh";
  const auto stride = strides(layer);
  constexpr Point small{30, 20}, back{36, -25};
  constexpr double stub = 15;
  std::array<std::vector<Chip>, 3> shown;
  for (std::size_t a = 0; a < 3; ++a) shown[a] = kept(dims[a], dims[a] <= 6 ? 6 : 4);
  const auto deep = static_cast<double>(shown[2].size());
  const Point pitch{deep * back.x + 30, -deep * back.y + 28};
  using Place = std::array<std::size_t, 3>;
  const auto chip_at = [&](const Place& p) {
    return first + shown[0][p[0]] * stride[0] + shown[1][p[1]] * stride[1] + shown[2][p[2]] * stride[2];
  };
  const auto middle = [&](const Place& p) {
    return Point{2 * stub + small.x / 2 + static_cast<double>(p[0]) * pitch.x + static_cast<double>(p[2]) * back.x,
                 2 * stub - (deep - 1) * back.y + small.y / 2 + static_cast<double>(p[1]) * pitch.y +
                     static_cast<double>(p[2]) * back.y};
  };
  constexpr std::array<Point, 3> ahead{{{1, 0}, {0, 1}, {0.82, -0.57}}};
  Sketch s;
  // From back to front, so that near units cover far ones.
  for (std::size_t z = shown[2].size(); z-- > 0;)
    for (std::size_t y = 0; y < shown[1].size(); ++y)
      for (std::size_t x = 0; x < shown[0].size(); ++x) {
        const Place p{x, y, z};
        const Point m = middle(p);
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const bool last = p[axis] + 1 == shown[axis].size();
          if (last && (!closed || dims[axis] <= 2)) continue;
          Place next = p;
          next[axis] = last ? 0 : p[axis] + 1;
          DrawnWire wire = neighbours(at, chip_at(p), chip_at(next), axis);
          const Point n = middle(next), d = ahead[axis];
          const double reach = (axis == 0 ? small.x / 2 : axis == 1 ? small.y / 2 : 15) + stub;
          wire.cut = !last && shown[axis][next[axis]] != shown[axis][p[axis]] + 1;
          wire.points = {m, last ? Point{m.x + d.x * reach, m.y + d.y * reach} : n};
          s.wires.push_back(wire);
          if (!last) continue;
          wire.points = {n, {n.x - d.x * reach, n.y - d.y * reach}};
          s.wires.push_back(std::move(wire));
        }
        DrawnShape one = chip(chip_at(p)).shapes.front();
        one.size = small, one.below.clear();
        one.at = {m.x - small.x / 2, m.y - small.y / 2};
        s.shapes.push_back(std::move(one));
      }
  const Place last{shown[0].size() - 1, shown[1].size() - 1, 0};
  s.size = {middle(last).x + (deep - 1) * back.x + small.x / 2 + 2 * stub, middle(last).y + small.y / 2 + 2 * stub};
  return s;
}

// The link between two chips, in both directions; empty where their route has more than one link.
std::vector<ResourceId> MachineSketcher::direct(Chip a, Chip b) const {
  std::vector<ResourceId> there, back;
  const sim::Machine& machine = plan_.machine();
  machine.route(a * machine.cores(), b * machine.cores(), there);
  machine.route(b * machine.cores(), a * machine.cores(), back);
  return there.size() == 1 && back.size() == 1 ? std::vector{there[0], back[0]} : std::vector<ResourceId>();
}

// Draws units on a circle: rings, full meshes, and units joined by links that a file lists.
Sketch MachineSketcher::circle(std::size_t at, Chip first) const {
  const FabricLayer& layer = plan_.layers()[at];
  const bool by_links = layer.level.kind == "links", ring = layer.level.kind != "full" && !by_links;
  const bool full = all_full(at);
  const Chip size = layer.fabric->size();
  const std::vector<Chip> shown = kept(size, layer.inner() == 1 ? most_on_circle : 8);
  std::vector<Sketch> units;
  Point largest;
  for (Chip i : shown) {
    const Chip begins = first + i * layer.inner();
    const bool in_full = full || i == 0;
    Sketch one = unit(at, begins, in_full);
    if (at > 0 && in_full) one = framed(std::move(one), at, begins);
    largest = {std::max(largest.x, one.size.x), std::max(largest.y, one.size.y)};
    units.push_back(std::move(one));
  }
  const double n = static_cast<double>(shown.size());
  const double radius = std::max(1.1 * std::hypot(largest.x, largest.y) * n / (2 * std::numbers::pi), 0.9 * largest.x);
  Sketch s{.size = {2 * radius + largest.x + 8, 2 * radius + largest.y + 8}};
  std::vector<Point> middles;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / n - std::numbers::pi / 2;
    middles.push_back({s.size.x / 2 + radius * std::cos(angle), s.size.y / 2 + radius * std::sin(angle)});
  }
  for (std::size_t i = 0; i < shown.size(); ++i)
    for (std::size_t j = i + 1; j < shown.size(); ++j) {
      const bool next = j == i + 1 || (i == 0 && j + 1 == shown.size());
      if (ring && !next) continue;
      const Chip a = first + shown[i] * layer.inner(), b = first + shown[j] * layer.inner();
      DrawnWire wire{
          .points = {edge(middles[i], units[i].size, middles[j]), edge(middles[j], units[j].size, middles[i])},
          .resources = {},
          .layer = static_cast<int>(at)};
      if (ring) {
        const bool round = i == 0 && j + 1 == shown.size() && j > 1;
        wire.resources = neighbours(at, round ? b : a, round ? a : b, 0).resources;
        wire.cut = !round && shown[j] != shown[i] + 1;
      } else if (by_links) {
        wire.resources = direct(a, b);
        if (wire.resources.empty()) continue;
      } else {
        const Chip distance = shown[j] - shown[i];
        for (Chip k = 0; k < layer.inner(); ++k) {
          wire.resources.push_back(plan_.port(layer, fmt::format("+{}", distance), a + k));
          wire.resources.push_back(plan_.port(layer, fmt::format("+{}", size - distance), b + k));
        }
        wire.bundle = layer.inner() > 1;
      }
      s.wires.push_back(std::move(wire));
    }
  for (std::size_t i = 0; i < shown.size(); ++i)
    s.add(std::move(units[i]), {middles[i].x - units[i].size.x / 2, middles[i].y - units[i].size.y / 2});
  if (shown.size() < static_cast<std::size_t>(size))
    s.words.push_back({{s.size.x / 2, s.size.y / 2}, fmt::format("{} of {}", shown.size(), size)});
  return s;
}

}  // namespace trellis::tools
