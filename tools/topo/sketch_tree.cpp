// Trees of switches, and dragonflies.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tools/topo/machine_sketcher.h"

namespace trellis::tools {
namespace {

constexpr Point switch_size{96, 28}, port_size{9, 9};
constexpr double rise = 54;  // from a unit below a switch up to the switch
constexpr Chip most_ports = 32;

std::vector<ResourceId> both(const FabricLayers& plan, const FabricLayer& layer, const std::string& name, Chip chip) {
  std::vector<ResourceId> found;
  for (const char* way : {"out", "in"})
    if (const ResourceId r = plan.port(layer, name.empty() ? way : name + " " + way, chip); r != sim::no_resource)
      found.push_back(r);
  return found;
}

Chip units_below(const std::vector<Chip>& below, std::size_t height) {
  Chip all = 1;
  for (std::size_t i = 0; i < height; ++i) all *= below[i];
  return all;
}

}  // namespace

// A unit with its network interfaces in a row on top.
MachineSketcher::Node MachineSketcher::leaf_unit(std::size_t at, Chip first, bool full) const {
  const FabricLayer& layer = plan_.layers()[at];
  Sketch inner = unit(at, first, full);
  if (layer.inner() > 1 && full) inner = framed(std::move(inner), at, first);
  Node node{.sketch = {}, .top = {inner.size.x / 2, 0}, .up = both(plan_, layer, "host", first)};
  const Chip shared = std::max<Chip>(1, plan_.sharers(layer, "out"));
  std::vector<std::vector<ResourceId>> ports;
  for (Chip chip = first; chip < first + layer.inner(); chip += shared) ports.push_back(both(plan_, layer, "", chip));
  if (node.up.empty())
    for (const auto& port : ports) node.up.insert(node.up.end(), port.begin(), port.end());
  if (layer.inner() == 1 || !full || std::ssize(ports) > most_ports) {
    node.sketch = std::move(inner);
    return node;
  }
  const double pitch = port_size.x + 4, left = (inner.size.x - pitch * static_cast<double>(ports.size())) / 2;
  for (std::size_t i = 0; i < ports.size(); ++i)
    node.sketch.shapes.push_back({.kind = DrawnShape::Kind::port,
                                  .at = {left + pitch * static_cast<double>(i), 0},
                                  .size = port_size,
                                  .label = "",
                                  .below = "",
                                  .title = fmt::format("{} interface {}", layer.level.name, i),
                                  .inside = ports[i]});
  node.sketch.words.push_back({{left + pitch * static_cast<double>(ports.size()) + 4, port_size.y},
                               fmt::format("{} {}", ports.size(), layer.level.name),
                               false});
  node.sketch.add(std::move(inner), {0, port_size.y + 3});
  return node;
}

MachineSketcher::Node MachineSketcher::branch(std::size_t at, Chip first, Chip units, std::size_t height,
                                              bool full) const {
  if (height == 0) return leaf_unit(at, first, full);
  const FabricLayer& layer = plan_.layers()[at];
  const std::vector<Chip> below = plan_.below(layer);
  const Chip each = units_below(below, height - 1), children = (units + each - 1) / each;
  if (!full) {
    Node node{.sketch = {.size = {112, 40}}, .top = {56, 0}};
    const Chip last = first + units * layer.inner() - 1;
    node.sketch.shapes.push_back({.kind = DrawnShape::Kind::box,
                                  .at = {},
                                  .size = node.sketch.size,
                                  .label = fmt::format("chips {}-{}", first, last),
                                  .below = "as the first",
                                  .title = fmt::format("chips {}-{}", first, last),
                                  .inside = plan_.within(at, first, units * layer.inner())});
    node.up = both(plan_, layer, fmt::format("level {}", height), first);
    return node;
  }
  const bool alone = below.size() == 1;
  std::vector<Node> nodes;
  std::size_t cut_before = 0;
  const bool chips = height == 1 && layer.inner() == 1;
  const std::vector<Chip> shown = kept(children, alone && chips ? 16 : height == 1 ? 8 : 5);
  const bool all_in_full = chips || (all_full(at) && children <= std::ssize(shown));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const Chip begins = shown[i] * each, count = std::min(each, units - begins);
    const bool in_full = i == 0 || all_in_full;
    nodes.push_back(branch(at, first + begins * layer.inner(), count, height - 1, in_full));
    if (i > 0 && shown[i] != shown[i - 1] + 1) cut_before = i;
  }
  Node all = joined(at, std::move(nodes), static_cast<Chip>(cut_before), height, first);
  if (cut_before > 0)
    all.sketch.words.push_back({{all.sketch.words.back().at.x, all.sketch.words.back().at.y + 14},
                                fmt::format("{} more", children - std::ssize(shown))});
  return all;
}

// Children side by side, with the switches that join them above. `cut`: index of the child before which some are left
// out; 0: none are.
MachineSketcher::Node MachineSketcher::joined(std::size_t at, std::vector<Node> nodes, Chip cut, std::size_t height,
                                              Chip first) const {
  const FabricLayer& layer = plan_.layers()[at];
  const std::vector<Chip> below = plan_.below(layer);
  const bool top = height == below.size(), spines = top && layer.level.kind == "clos" && height > 1;
  const double gap = height == 1 && layer.inner() == 1 ? 12 : 26;
  Sketch s;
  const double children_top = switch_size.y + rise;
  double x = 0;
  std::vector<Point> tops;
  double dots = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (cut > 0 && i == static_cast<std::size_t>(cut)) dots = x + 12, x += 50;
    tops.push_back({x + nodes[i].top.x, children_top + nodes[i].top.y});
    const double wide = nodes[i].sketch.size.x;
    s.add(std::move(nodes[i].sketch), {x, children_top});
    x += wide + gap;
  }
  const double wide = std::max(s.size.x, switch_size.x);
  const std::size_t count = spines ? std::clamp<std::size_t>(nodes.size(), 2, 4) : 1;
  Node node{.sketch = {}, .top = {wide / 2, 0}, .up = both(plan_, layer, fmt::format("level {}", height), first)};
  std::string name = spines ? "spine" : height == 1 && below.size() > 1 ? "leaf" : "switch";
  if (!top) name += fmt::format(" {}", first / layer.inner() / units_below(below, height));
  for (std::size_t k = 0; k < count; ++k) {
    const double centre = wide * (static_cast<double>(k) + 0.5) / static_cast<double>(count);
    for (std::size_t i = 0; i < tops.size(); ++i)
      s.wires.push_back({.points = {{centre, switch_size.y}, tops[i]},
                         .resources = nodes[i].up,
                         .layer = static_cast<int>(at),
                         .bundle = height > 1 || layer.inner() > 1});
    s.shapes.push_back({.kind = DrawnShape::Kind::node,
                        .at = {centre - switch_size.x / 2, 0},
                        .size = switch_size,
                        .label = name,
                        .below = ""});
  }
  s.size.x = wide;
  if (cut > 0) s.words.push_back({{dots + 10, children_top + 14}, "..."});
  node.sketch = std::move(s);
  return node;
}

Sketch MachineSketcher::tree(std::size_t at, Chip first) const {
  const FabricLayer& layer = plan_.layers()[at];
  return branch(at, first, layer.fabric->size(), plan_.below(layer).size(), true).sketch;
}

// All groups in a circle, each joined to every other; beside them the first group in full.
Sketch MachineSketcher::dragonfly(std::size_t at, Chip first) const {
  const FabricLayer& layer = plan_.layers()[at];
  const Chip groups = layer.fabric->dims()[2], chips = strides(layer)[2];
  const std::vector<Chip> shown = kept(groups, 40);
  constexpr Point size{42, 24};
  const double n = static_cast<double>(shown.size()), radius = std::max(90.0, n * 50 / (2 * std::numbers::pi));
  Sketch s{.size = {2 * radius + size.x + 8, 2 * radius + size.y + 8}};
  std::vector<Point> middles;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / n;
    middles.push_back({s.size.x / 2 + radius * std::cos(angle), s.size.y / 2 + radius * std::sin(angle)});
  }
  for (std::size_t i = 0; i < shown.size(); ++i)
    for (std::size_t j = i + 1; j < shown.size(); ++j) {
      const Chip distance = shown[j] - shown[i];
      s.wires.push_back(
          {.points = {middles[i], middles[j]},
           .resources = {plan_.port(layer, fmt::format("global +{}", distance), first + shown[i] * chips),
                         plan_.port(layer, fmt::format("global +{}", groups - distance), first + shown[j] * chips)},
           .layer = static_cast<int>(at)});
    }
  for (std::size_t i = 0; i < shown.size(); ++i)
    s.shapes.push_back({.kind = DrawnShape::Kind::box,
                        .at = {middles[i].x - size.x / 2, middles[i].y - size.y / 2},
                        .size = size,
                        .label = fmt::format("g{}", shown[i]),
                        .below = "",
                        .title = fmt::format("group {}, chips {}-{}", shown[i], first + shown[i] * chips,
                                             first + (shown[i] + 1) * chips - 1),
                        .inside = plan_.within(at, first + shown[i] * chips, chips)});
  Sketch one = group(at, first);
  const double right = s.size.x + 40, middle = std::max(0.0, (s.size.y - one.size.y) / 2);
  s.wires.push_back({.points = {middles[0], {right, s.size.y / 2}}, .resources = {}, .layer = -1, .cut = true});
  s.add(std::move(one), {right, middle});
  return s;
}

Sketch MachineSketcher::group(std::size_t at, Chip first) const {
  const FabricLayer& layer = plan_.layers()[at];
  const auto& dims = layer.fabric->dims();
  const auto stride = strides(layer);
  const std::vector<Chip> routers = kept(dims[1], 16), hosts = kept(dims[0], 6);
  constexpr Point size{40, 24}, host{34, 20};
  const double n = static_cast<double>(routers.size());
  const double fan = static_cast<double>(hosts.size()) * (host.x + 6);
  const double radius = std::max(70.0, n * fan / (2 * std::numbers::pi) - 54), outer = radius + 64;
  const Point middle{outer + fan / 2 + 8, outer + 44};
  Sketch s{.size = {2 * middle.x, 2 * middle.y}};
  s.shapes.push_back({.kind = DrawnShape::Kind::unit,
                      .at = {},
                      .size = s.size,
                      .label = fmt::format("group g0 in full: chips {}-{}", first, first + stride[2] - 1),
                      .below = ""});
  std::vector<Point> at_router;
  std::vector<DrawnShape> nodes;
  for (std::size_t i = 0; i < routers.size(); ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / n - std::numbers::pi / 2;
    const Point out{std::cos(angle), std::sin(angle)};
    at_router.push_back({middle.x + radius * out.x, middle.y + radius * out.y});
    nodes.push_back({.kind = DrawnShape::Kind::node,
                     .at = {at_router.back().x - size.x / 2, at_router.back().y - size.y / 2},
                     .size = size,
                     .label = fmt::format("r{}", routers[i]),
                     .below = ""});
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const Chip chip_number = first + routers[i] * stride[1] + hosts[h] * stride[0];
      const double aside = (static_cast<double>(h) - static_cast<double>(hosts.size() - 1) / 2) * (host.x + 6);
      // The hosts of a router stand side by side along the circle's tangent, at smaller distances where it is steep, as
      // a host is not as high as it is wide.
      const Point where{middle.x + outer * out.x - out.y * aside,
                        middle.y + outer * out.y + out.x * aside * (host.y + 6) / (host.x + 6)};
      s.wires.push_back({.points = {at_router.back(), where},
                         .resources = both(plan_, layer, "host", chip_number),
                         .layer = static_cast<int>(at)});
      DrawnShape shape = unit(at, chip_number, false).shapes.front();
      shape.size = host, shape.below.clear();
      if (shape.kind == DrawnShape::Kind::box) shape.label = std::to_string(chip_number);
      shape.at = {where.x - host.x / 2, where.y - host.y / 2};
      nodes.push_back(std::move(shape));
    }
  }
  for (std::size_t i = 0; i < routers.size(); ++i)
    for (std::size_t j = i + 1; j < routers.size(); ++j) {
      const Chip distance = routers[j] - routers[i];
      s.wires.push_back(
          {.points = {at_router[i], at_router[j]},
           .resources = {plan_.port(layer, fmt::format("local +{}", distance), first + routers[i] * stride[1]),
                         plan_.port(layer, fmt::format("local +{}", dims[1] - distance),
                                    first + routers[j] * stride[1])},
           .layer = static_cast<int>(at)});
    }
  s.shapes.insert(s.shapes.end(), nodes.begin(), nodes.end());
  return s;
}

}  // namespace trellis::tools
