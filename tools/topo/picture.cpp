#include <fmt/format.h>

#include <algorithm>

#include "tools/picture/palette.h"
#include "tools/picture/svg.h"
#include "tools/topo/views.h"

namespace trellis::tools {

using namespace launch;
namespace {

using draw::Point;
using draw::Svg;

constexpr double margin = 24, heading = 44, padding = 10, gap = 8, line_height = 16, letter = 6.3, row_width = 1100;
constexpr double core_width = 110, label_height = 20;
constexpr std::string_view style =
    R"(text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2328;font-size:11px}
.paper{fill:#fbfbfa}.part{fill:#1f2328;fill-opacity:.035;stroke:#c3c8ce}.core{fill:#fff;stroke:#9aa3ad}
.other{opacity:.45}.dim{fill:#646c76}.free{fill:none;stroke:#c3c8ce;stroke-dasharray:3 3}
@media (prefers-color-scheme:dark){text{fill:#e3e6ea}.paper{fill:#16191d}.part{fill:#fff;fill-opacity:.04;stroke:#454c55}
.core{fill:#22272e;stroke:#646c76}.dim{fill:#9aa3ad}.free{stroke:#454c55}}
)";

// A part as a rectangle: a core with its own caches, or a part that contains others.
struct Box {
  std::vector<const Part*> chain;
  std::vector<std::string> words;  // one line each
  Point size;
  std::vector<Box> inside;
  std::vector<Point> corners;  // of the boxes inside, relative to this one's corner
  bool core() const { return chain.back()->kind == Part::Kind::core; }
};

std::string threads_text(const Part& core) {
  std::vector<int> all;
  for (const Part& thread : core.parts) all.push_back(thread.number);
  return fmt::format("thread{} {}", all.size() == 1 ? "" : "s", ranges(all));
}

Box core_box(std::vector<const Part*> chain, bool with_ranks) {
  Box box{.chain = std::move(chain)};
  const Part& core = *box.chain.back();
  box.words = {words_for(core), threads_text(core)};
  for (const Part* p : box.chain)
    if (p != &core) box.words.push_back(words_for(*p));
  const double below = with_ranks ? label_height + gap : 0;
  box.size = {core_width, line_height * static_cast<double>(box.words.size()) + padding + below};
  return box;
}

// Places parts in rows of at most `room` width.
Box box_of(const Part& p, double room, bool with_ranks) {
  std::vector<const Part*> chain = chain_from(p);
  if (chain.back()->kind == Part::Kind::core) return core_box(std::move(chain), with_ranks);
  Box box{.chain = std::move(chain)};
  std::string title;
  for (const Part* one : box.chain)
    if (one->kind != Part::Kind::machine) title += (title.empty() ? "" : " · ") + words_for(*one);
  box.words = {title};
  const double top = title.empty() ? padding : padding + line_height + 4;
  double x = padding, y = top, row = 0, right = 2 * padding + letter * static_cast<double>(title.size());
  for (const Part& part : box.chain.back()->parts) {
    Box one = box_of(part, room - 2 * padding, with_ranks);
    if (x > padding && x + one.size.x + padding > room) {
      x = padding;
      y += row + gap;
      row = 0;
    }
    box.corners.push_back({x, y});
    row = std::max(row, one.size.y);
    x += one.size.x + gap;
    right = std::max(right, x - gap + padding);
    box.inside.push_back(std::move(one));
  }
  box.size = {right, y + row + padding};
  return box;
}

void draw_core(Svg& svg, const Box& box, Point at, const PlacedRanks& placed) {
  const Part& core = *box.chain.back();
  const bool usable = !usable_threads(core).empty();
  svg.open(usable ? "usable" : "other", usable ? "" : "not for this process");
  svg.rect(at, box.size, 4, "class=\"core\"");
  double y = at.y + line_height;
  for (const std::string& words : box.words) {
    svg.text({at.x + 8, y}, words, &words == &box.words.front() ? "font-weight=\"600\"" : "class=\"dim\"");
    y += line_height;
  }
  if (placed.ranks != 0) {
    const int rank = placed.rank_on(core);
    const Point corner{at.x + 8, at.y + box.size.y - label_height - gap}, size{box.size.x - 16, label_height};
    if (rank < 0) {
      svg.rect(corner, size, 4, "class=\"free\"");
    } else {
      const draw::Ink ink = draw::ink(rank);
      svg.rect(corner, size, 4,
               ink.outlined ? fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2\"", ink.colour)
                            : fmt::format("fill=\"{}\"", ink.colour));
      svg.text({corner.x + size.x / 2, corner.y + 14}, fmt::format("rank {}", rank),
               fmt::format("text-anchor=\"middle\" font-weight=\"600\"{}",
                           ink.outlined ? "" : fmt::format(" style=\"fill:{}\"", ink.text)));
    }
  }
  svg.close();
}

void draw_box(Svg& svg, const Box& box, Point at, const PlacedRanks& placed) {
  if (box.core()) return draw_core(svg, box, at, placed);
  svg.rect(at, box.size, 6, "class=\"part\"");
  svg.text({at.x + padding, at.y + padding + 11}, box.words.front(), "font-weight=\"600\"");
  for (std::size_t i = 0; i < box.inside.size(); ++i)
    draw_box(svg, box.inside[i], {at.x + box.corners[i].x, at.y + box.corners[i].y}, placed);
}

}  // namespace

std::string topo_picture(const TopoMachine& machine, const PlacedRanks& placed) {
  const Box box = box_of(machine.whole, row_width, placed.ranks != 0);
  const std::string title = placed.ranks == 0 ? machine.name : fmt::format("{}: {}", machine.name, placed.sentence());
  const double width = std::max(box.size.x, 8.5 * static_cast<double>(title.size())) + 2 * margin;
  const double height = box.size.y + heading + margin;
  Svg svg(width, height, style, title);
  svg.rect({0, 0}, {width, height}, 0, "class=\"paper\"");
  svg.text({margin, 29}, title, "style=\"font-size:16px\" font-weight=\"600\"");
  draw_box(svg, box, {margin, heading}, placed);
  return std::move(svg).finish();
}

}  // namespace trellis::tools
