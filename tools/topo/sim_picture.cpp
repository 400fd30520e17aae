#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/hardware/timeline/format_quantities.h"
#include "tools/picture/palette.h"
#include "tools/topo/machine_renderings.h"
#include "tools/topo/machine_sketcher.h"

namespace trellis::tools {
namespace {

using draw::number;
using draw::Svg;

constexpr double margin = 24, heading = 46, legend_line = 18;
constexpr std::size_t classes = 6;  // colour classes of link use
constexpr std::size_t many = 300;   // so many wires would cover the paper
constexpr std::string_view style =
    R"(.machine text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2328;font-size:11px}
.machine .title{font-size:16px;font-weight:600}.machine .small{font-size:8.5px}.machine .dim{fill:#646c76}
.machine .unit{fill:#1f2328;fill-opacity:.03;stroke:#c3c8ce}
.machine .chip{fill:#fff;stroke:#7d8894}.machine .box{fill:#f1f3f5;stroke:#9aa3ad;stroke-dasharray:4 3}
.machine .node{fill:#e4e8ec;stroke:#7d8894}.machine .port{fill:#9aa3ad}
.machine .wire{fill:none;stroke-linecap:round;stroke-linejoin:round}.machine .cut{stroke-dasharray:2 6}
.machine .plain{stroke:#9aa3ad}.machine .dead{stroke:#1f2328;stroke-dasharray:3 4}
.machine .u0{stroke:#d3d8dd}.machine .u1{stroke:#9fc6e3}.machine .u2{stroke:#56a0d3}.machine .u3{stroke:#e6b000}
.machine .u4{stroke:#e07b00}.machine .u5{stroke:#b3261e}
.machine rect.u0{fill:#f6f7f8}.machine rect.u1{fill:#dcebf6}.machine rect.u2{fill:#b5d6ee}.machine rect.u3{fill:#f8e6a5}
.machine rect.u4{fill:#f5c898}.machine rect.u5{fill:#e9a39e}
@media (prefers-color-scheme:dark){.machine text{fill:#e3e6ea}.machine .dim{fill:#9aa3ad}
.machine .unit{fill:#fff;fill-opacity:.04;stroke:#454c55}.machine .chip{fill:#22272e;stroke:#7d8894}
.machine .box{fill:#1c2127;stroke:#646c76}.machine .node{fill:#333a42}.machine .dead{stroke:#e3e6ea}
.machine .u0{stroke:#3a4149}.machine .u1{stroke:#2c5a7d}.machine .u2{stroke:#3f8fc9}
.machine rect.u0{fill:#22272e}.machine rect.u1{fill:#1f3648}.machine rect.u2{fill:#27506f}.machine rect.u3{fill:#5c4a10}
.machine rect.u4{fill:#6b4012}.machine rect.u5{fill:#6b2320}}
)";

std::size_t class_of(double use) {
  if (use <= 0.005) return 0;
  return std::min(classes - 1, 1 + static_cast<std::size_t>(use * 5));
}

class Drawing {
 public:
  Drawing(const sim::Machine& machine, const Use& use, std::string title)
      : machine_(machine), use_(use), sketcher_(machine), title_(std::move(title)) {
    if (title_.empty()) title_ = machine.name();
  }

  std::string svg() {
    const Sketch sketch = sketcher_.whole();
    const std::vector<std::string> legend = legend_lines();
    double width = sketch.size.x;
    for (const std::string& line : legend) width = std::max(width, 5.9 * static_cast<double>(line.size()) + 40);
    width = std::max({width, 8.6 * static_cast<double>(title_.size()), use_ ? 520.0 : 0.0}) + 2 * margin;
    const double below = heading + sketch.size.y + 26;
    const double lines = static_cast<double>(legend.size()) + (use_ ? 2 : 0);
    const double height = below + lines * legend_line + 8;
    Svg svg(width, height, style, title_);
    svg.open("machine");
    svg.text({margin, 29}, title_, "class=\"title\"");
    // Moves the sketch to its place by changing its coordinates, as our SVG groups have no transform.
    const Point at{margin + std::max(0.0, (width - 2 * margin - sketch.size.x) / 2), heading};
    Sketch placed;
    placed.add(sketch, at);
    many_wires_ = placed.wires.size() > many;
    for (const DrawnShape& s : placed.shapes)
      if (s.kind == DrawnShape::Kind::unit) draw_shape(svg, s);
    for (const DrawnWire& w : placed.wires) draw_wire(svg, w);
    for (const DrawnShape& s : placed.shapes)
      if (s.kind != DrawnShape::Kind::unit) draw_shape(svg, s);
    for (const PlacedText& w : placed.words)
      svg.text(w.at, w.text, w.centred ? "class=\"dim\" text-anchor=\"middle\"" : "class=\"dim\"");
    draw_legend(svg, legend, below);
    svg.close();
    return std::move(svg).finish();
  }

 private:
  double most_used(const std::vector<ResourceId>& all) const {
    double most = 0;
    for (ResourceId r : all)
      if (r != sim::no_resource) most = std::max(most, use_(r));
    return most;
  }

  bool dead(const std::vector<ResourceId>& all) const {
    return std::ranges::any_of(all, [&](ResourceId r) { return r != sim::no_resource && machine_.rate(r) <= 0; });
  }

  // One line for each resource, the most used first.
  std::string facts(std::vector<ResourceId> all) const {
    constexpr std::size_t most = 8;
    std::erase(all, sim::no_resource);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (use_) std::ranges::stable_sort(all, std::greater<>(), [&](ResourceId r) { return use_(r); });
    std::string text;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
      text += fmt::format("{}{}: {}", i == 0 ? "" : "; ", machine_.resource_name(all[i]),
                          machine_.rate(all[i]) <= 0 ? "dead" : sim::rate_words(machine_.rate(all[i])));
      if (use_) text += fmt::format(", {:.0f}% used", 100 * use_(all[i]));
    }
    if (all.size() > most) text += fmt::format("; and {} more{}", all.size() - most, use_ ? ", used less" : "");
    return text;
  }

  void draw_shape(Svg& svg, const DrawnShape& s) const {
    DrawnShape shown = s;
    if (!s.inside.empty()) {
      if (use_) shown.css = fmt::format(" u{}", class_of(most_used(s.inside)));
      const std::string known = facts(s.inside);
      if (!known.empty()) shown.title += ": " + known;
    }
    tools::draw_shape(svg, shown);
  }

  void draw_wire(Svg& svg, const DrawnWire& w) const {
    std::string css = "wire", more;
    double width = w.bundle ? 2.4 : many_wires_ ? 0.6 : 1.5;
    if (w.cut) css += " cut";
    if (dead(w.resources)) {
      css += " dead";
    } else if (use_ && w.layer >= 0 && !w.resources.empty()) {
      const std::size_t c = class_of(most_used(w.resources));
      css += fmt::format(" u{}", c);
      width += (many_wires_ ? 0.2 : 0.45) * static_cast<double>(c);
    } else if (use_ || w.layer < 0) {
      css += " plain";
    } else {
      more = fmt::format(" style=\"stroke:{}\"", draw::ink(w.layer).colour);
    }
    svg.open("shape", facts(w.resources));
    svg.path(way(w.points), fmt::format("class=\"{}\" stroke-width=\"{}\"{}", css, number(width), more));
    svg.close();
  }

  // The path of a wire: straight, or with round corners.
  static std::string way(const std::vector<Point>& p) {
    constexpr double corner = 6;
    const auto towards = [&](Point from, Point to) {
      const double length = std::max(1e-9, std::hypot(to.x - from.x, to.y - from.y));
      const double part = std::min(0.5, corner / length);
      return Point{from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part};
    };
    std::string text = fmt::format("M{} {}", number(p[0].x), number(p[0].y));
    for (std::size_t i = 1; i + 1 < p.size(); ++i) {
      const Point in = towards(p[i], p[i - 1]), out = towards(p[i], p[i + 1]);
      text += fmt::format("L{} {}Q{} {} {} {}", number(in.x), number(in.y), number(p[i].x), number(p[i].y),
                          number(out.x), number(out.y));
    }
    return text + fmt::format("L{} {}", number(p.back().x), number(p.back().y));
  }

  // The kind of a port: "x", "host", "link".
  static std::string kind_of(const sim::Port& port, const FabricLayer& layer) {
    std::string kind = port.name.substr(layer.level.name.size() + 1);
    while (!kind.empty() && std::string_view("+-0123456789 ").find(kind.back()) != std::string_view::npos)
      kind.pop_back();
    for (const std::string_view way : {"out", "in"})
      if (kind.ends_with(way)) kind.erase(kind.size() - way.size());
    while (kind.ends_with(' ')) kind.pop_back();
    return kind.empty() ? "link" : kind;
  }

  std::vector<std::string> legend_lines() const {
    std::vector<std::string> lines;
    for (const FabricLayer& layer : sketcher_.plan().layers()) {
      const auto& ports = layer.fabric->ports();
      std::string line = fmt::format("{}, a {} of {}", layer.level.name, layer.level.kind, layer.fabric->size());
      if (layer.inner() > 1) line += fmt::format(" units of {} chips each", layer.inner());
      std::string before;
      for (const sim::Port& port : ports) {
        const std::string rate = fmt::format("{} {} each way", kind_of(port, layer), sim::rate_words(port.rate));
        if (rate != before) line += ", " + rate;
        before = rate;
      }
      if (!ports.empty() && ports.front().latency > 0)
        line += fmt::format(", {}", sim::time_words(ports.front().latency));
      lines.push_back(std::move(line));
    }
    return lines;
  }

  void draw_legend(Svg& svg, const std::vector<std::string>& lines, double y) const {
    for (std::size_t i = 0; i < lines.size(); ++i, y += legend_line) {
      svg.line({margin, y - 4}, {margin + 24, y - 4},
               use_
                   ? std::string("class=\"plain\" stroke-width=\"2.5\"")
                   : fmt::format("stroke=\"{}\" stroke-width=\"2.5\"", draw::ink(static_cast<std::int64_t>(i)).colour));
      svg.text({margin + 32, y}, lines[i], "class=\"dim\"");
    }
    if (!use_) return;
    constexpr std::string_view labels[classes] = {"unused", "to 20%", "to 40%", "to 60%", "to 80%", "above"};
    svg.text({margin, y + 4}, "used:", "class=\"dim\"");
    for (std::size_t c = 0; c < classes; ++c) {
      const double x = margin + 42 + 78 * static_cast<double>(c);
      svg.line({x, y}, {x + 22, y},
               fmt::format("class=\"u{}\" stroke-width=\"{}\"", c, number(1.5 + 0.45 * static_cast<double>(c))));
      svg.text({x + 27, y + 4}, labels[c], "class=\"dim\"");
    }
    const bool engines = !sketcher_.plan().engines(0).empty();
    svg.text({margin, y + 4 + legend_line},
             engines ? "of a link the busier direction; a chip's colour is that of its HBM or DMA engines"
                     : "of a link the busier direction",
             "class=\"dim\"");
  }

  const sim::Machine& machine_;
  const Use& use_;
  const MachineSketcher sketcher_;
  std::string title_;
  bool many_wires_ = false;
};

}  // namespace

std::string sim_topo_picture(const sim::Machine& machine, const Use& use, const std::string& title) {
  return Drawing(machine, use, title).svg();
}

}  // namespace trellis::tools
