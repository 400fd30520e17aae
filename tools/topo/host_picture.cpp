#include <fmt/format.h>

#include <algorithm>

#include "tools/picture/palette.h"
#include "tools/picture/svg.h"
#include "tools/topo/host_views.h"
#include "tools/topo/sketch_layout.h"

namespace trellis::tools {

using namespace launch;
namespace {

using draw::Svg;

constexpr double margin = 24, heading = 44, padding = 10, gap = 8, line_height = 16, letter = 6.3, row_width = 1100;
constexpr double core_width = 110, label_height = 20;
constexpr std::string_view style =
    R"(text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2328;font-size:11px}
.unit{fill:#1f2328;fill-opacity:.035;stroke:#c3c8ce}.core{fill:#fff;stroke:#9aa3ad}
.other{opacity:.45}.dim{fill:#646c76}.free{fill:none;stroke:#c3c8ce;stroke-dasharray:3 3}
@media (prefers-color-scheme:dark){text{fill:#e3e6ea}.unit{fill:#fff;fill-opacity:.04;stroke:#454c55}
.core{fill:#22272e;stroke:#646c76}.dim{fill:#9aa3ad}.free{stroke:#454c55}}
)";

std::string threads_text(const TopoObject& core) {
  std::vector<int> all;
  for (const TopoObject& thread : core.parts) all.push_back(thread.number);
  return fmt::format("thread{} {}", all.size() == 1 ? "" : "s", ranges(all));
}

// The shape of the rank that runs on a core, or of an unused core.
DrawnShape rank_on(const TopoObject& core, const PlacedRanks& placed) {
  const int rank = placed.rank_on(core);
  if (rank < 0) return {.kind = DrawnShape::Kind::unused, .at = {}, .size = {}, .label = "", .below = ""};
  const draw::Ink ink = draw::ink(rank);
  DrawnShape s{
      .kind = DrawnShape::Kind::rank, .at = {}, .size = {}, .label = fmt::format("rank {}", rank), .below = ""};
  s.fill = ink.outlined ? fmt::format(" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"", ink.colour)
                        : fmt::format(" fill=\"{}\"", ink.colour);
  s.ink = " font-weight=\"600\"";
  if (!ink.outlined) s.ink += fmt::format(" style=\"fill:{}\"", ink.text);
  return s;
}

Sketch core_sketch(const std::vector<const TopoObject*>& chain, const PlacedRanks& placed) {
  const TopoObject& core = *chain.back();
  const bool usable = !usable_threads(core).empty();
  DrawnShape shape{.kind = DrawnShape::Kind::core, .at = {}, .size = {}, .label = "", .below = ""};
  shape.lines = {words_for(core), threads_text(core)};
  for (const TopoObject* p : chain)
    if (p != &core) shape.lines.push_back(words_for(*p));
  shape.title = usable ? "" : "not for this process";
  shape.group = usable ? "usable" : "other";
  const double rank_height = placed.ranks != 0 ? label_height + gap : 0;
  shape.size = {core_width, line_height * static_cast<double>(shape.lines.size()) + padding + rank_height};
  Sketch s{.size = shape.size};
  s.shapes.push_back(std::move(shape));
  if (placed.ranks == 0) return s;
  DrawnShape rank = rank_on(core, placed);
  rank.at = {8, s.size.y - label_height - gap};
  rank.size = {s.size.x - 16, label_height};
  s.shapes.push_back(std::move(rank));
  return s;
}

// Draws an object of the topology with all that it contains, in rows that are at most `room` wide.
Sketch part_sketch(const TopoObject& p, double room, const PlacedRanks& placed) {
  const std::vector<const TopoObject*> chain = chain_from(p);
  if (chain.back()->kind == TopoObject::Kind::core) return core_sketch(chain, placed);
  std::string title;
  for (const TopoObject* one : chain)
    if (one->kind != TopoObject::Kind::machine) title += (title.empty() ? "" : " · ") + words_for(*one);
  std::vector<Sketch> inside;
  for (const TopoObject& part : chain.back()->parts) inside.push_back(part_sketch(part, room - 2 * padding, placed));
  Sketch inner = in_rows(std::move(inside), gap, room - 2 * padding);
  inner.size.x = std::max(inner.size.x, letter * static_cast<double>(title.size()));
  return in_frame(std::move(inner), title, padding);
}

}  // namespace

std::string topo_picture(const TopoMachine& machine, const PlacedRanks& placed) {
  const Sketch whole = part_sketch(machine.whole, row_width, placed);
  const std::string title = placed.ranks == 0 ? machine.name : fmt::format("{}: {}", machine.name, placed.sentence());
  const double width = std::max(whole.size.x, 8.5 * static_cast<double>(title.size())) + 2 * margin;
  const double height = whole.size.y + heading + margin;
  Svg svg(width, height, style, title);
  svg.text({margin, 29}, title, "style=\"font-size:16px\" font-weight=\"600\"");
  Sketch at_its_place;
  at_its_place.add(whole, {margin, heading});
  for (const DrawnShape& s : at_its_place.shapes) draw_shape(svg, s);
  return std::move(svg).finish();
}

}  // namespace trellis::tools
