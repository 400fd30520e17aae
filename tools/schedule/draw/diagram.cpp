#include "tools/schedule/draw/diagram.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/schedule/draw/glyphs.h"
#include "tools/schedule/draw/legend.h"

namespace trellis::tools::draw {
namespace {

constexpr double margin = 26, title_size = 18, fact_size = 12, fact_line = 18, least_width = 460;
constexpr double lane_header = 56, round_header = 24, panel_gap = 56;

// The picture is light by default, and dark when the reader prefers dark.
constexpr std::string_view style =
    R"(text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2328}
.band{fill:#f1f2f3}.lane{stroke:#c3c8ce;stroke-width:1.2}.dim{fill:#646c76}
.badge{fill:#e4e7ea}.open{fill:#fbfbfa}.wire{fill:none;stroke-width:1.7}
.t:hover .wire{stroke-width:4}.t:hover rect{stroke:#1f2328;stroke-width:1.5}.l:hover rect{stroke-width:3}
@media (prefers-color-scheme:dark){text{fill:#e3e6ea}.band{fill:#1d2126}.lane{stroke:#454c55}
.dim{fill:#9aa3ad}.badge{fill:#2b3138}.open{fill:#16191d}.t:hover rect{stroke:#e3e6ea}}
)";

std::string axis(std::string_view anchor) {
  return fmt::format("class=\"dim\" font-size=\"11\" text-anchor=\"{}\"", anchor);
}

class Drawing {
 public:
  Drawing(const DiagramLayout& l, const DiagramWords& w) : l_(l), w_(w) {
    double longest = 0;
    for (const Band& panel : l.panels) longest = std::max(longest, panel.end - panel.begin);
    const double wide = l.down ? l.across : longest;
    width_ = std::max(least_width, wide + 2 * lane_header) + 2 * margin;
    wrap_facts();
    head_ = margin + title_size + 8 + fact_line * static_cast<double>(fact_lines_.size()) + 14;
    left_ = (width_ - wide) / 2;
    top_ = head_ + (l.down ? lane_header - 16 : round_header + 8);
    panel_height_ = l.down ? longest + lane_header : l.across + panel_gap;
    legend_top_ = top_ + panel_height_ * static_cast<double>(l.panels.size()) - (l.down ? 16 : panel_gap - 24);
  }

  std::string draw() {
    const Legend legend = meanings();
    const Point corner{margin, legend_top_};
    const double height = legend_top_ + draw_legend(nullptr, legend, corner, width_ - 2 * margin) + margin - 6;
    Svg svg(width_, height, style, fmt::format("{} on {}", w_.heading, w_.facts.front()));
    heading(svg);
    rounds(svg);
    lanes(svg);
    // Lines first, so that no line covers another transfer's label or mark.
    for (std::size_t i = 0; i < l_.locals.size(); ++i) local(svg, i);
    for (std::size_t i = 0; i < l_.moves.size(); ++i)
      if (!l_.moves[i].shares) move(svg, i);
    draw_legend(&svg, legend, corner, width_ - 2 * margin);
    return std::move(svg).finish();
  }

 private:
  Point at(double along, double across) const { return in_panel(panel_of(along), along, across); }
  std::size_t panel_of(double along) const {
    std::size_t i = 0;
    while (i + 1 < l_.panels.size() && along >= l_.panels[i].end) ++i;
    return i;
  }
  Point in_panel(std::size_t i, double along, double across) const {
    if (l_.down) return {left_ + across, top_ + along};
    const double below = panel_height_ * static_cast<double>(i);
    return {left_ + along - l_.panels[i].begin, top_ + below + across};
  }
  void wrap_facts();
  void heading(Svg&) const;
  void rounds(Svg&) const;
  void lanes(Svg&) const;
  void badge(Svg&, Point, std::size_t rank) const;
  void move(Svg&, std::size_t) const;
  void tag(Svg&, const DrawnMove&, const Ink&) const;
  void tail(Svg&, const DrawnMove&, const Ink&) const;
  void wire(Svg&, const DrawnMove&, const Ink&, const std::string& curve) const;
  void local(Svg&, std::size_t) const;
  Legend meanings() const;

  const DiagramLayout& l_;
  const DiagramWords& w_;
  double width_ = 0, head_ = 0, panel_height_ = 0, left_ = 0, top_ = 0, legend_top_ = 0;
  std::vector<std::string> fact_lines_;
};

void Drawing::wrap_facts() {
  for (const std::string& fact : w_.facts) {
    const bool fits =
        !fact_lines_.empty() && text_width(fact_lines_.back() + " · " + fact, fact_size) < width_ - 2 * margin;
    if (fits)
      fact_lines_.back() += " · " + fact;
    else
      fact_lines_.push_back(fact);
  }
}

Legend Drawing::meanings() const {
  Legend found{.colours_mean = w_.colours_mean, .colours = w_.colours, .labels_mean = w_.labels_mean, .down = l_.down};
  if (l_.labelled) found.example = w_.label_example;
  for (const DrawnMove& m : l_.moves) {
    (m.adds ? found.adds : found.puts) = true;
    found.shared |= m.shares;
  }
  for (const Ink& ink : w_.move_inks) found.outlined |= ink.outlined;
  for (const DrawnLocalStep& x : l_.locals) (x.adds ? found.sums : found.copies) = true;
  return found;
}

void Drawing::heading(Svg& svg) const {
  svg.text({margin, margin + title_size - 3}, w_.heading,
           fmt::format("font-size=\"{}\" font-weight=\"600\"", title_size));
  double y = margin + title_size + 8 + fact_line - 6;
  for (const std::string& line : fact_lines_) {
    svg.text({margin, y}, line, fmt::format("class=\"dim\" font-size=\"{}\"", fact_size));
    y += fact_line;
  }
}

void Drawing::rounds(Svg& svg) const {
  const double over = 10;  // beyond the outermost lanes
  for (std::size_t i = 0; i < l_.rounds.size(); ++i) {
    const Band& band = l_.rounds[i];
    const std::size_t panel = panel_of(band.begin);
    const Point from = in_panel(panel, band.begin, -over), to = in_panel(panel, band.end, l_.across + over);
    if (i % 2 == 0) svg.rect(from, {to.x - from.x, to.y - from.y}, 0, "class=\"band\"");
    const std::string number = fmt::format("{}", w_.first_round + static_cast<std::int32_t>(i));
    const Point middle{(from.x + to.x) / 2, (from.y + to.y) / 2};
    if (l_.down)
      svg.text({from.x - 8, middle.y + 4}, number, axis("end"));
    else
      svg.text({middle.x, from.y - 7}, number, axis("middle"));
  }
  for (std::size_t i = 0; i < l_.panels.size() && !l_.rounds.empty(); ++i) {
    const Point corner = in_panel(i, l_.panels[i].begin, -over);
    svg.text({corner.x - 8, corner.y - 7}, "round", axis("end"));
  }
}

void Drawing::badge(Svg& svg, Point middle, std::size_t rank) const {
  svg.rect({middle.x - 14, middle.y - 10}, {28, 20}, 10, "class=\"badge\"");
  svg.text({middle.x, middle.y + 4}, w_.lanes[rank].first,
           "font-size=\"11.5\" font-weight=\"600\" text-anchor=\"middle\"");
}

void Drawing::lanes(Svg& svg) const {
  for (std::size_t r = 0; r < l_.lane.size(); ++r) {
    const auto& [name, small] = w_.lanes[r];
    svg.open("r", small.empty() ? fmt::format("rank {}", name) : fmt::format("rank {} at {}", name, small));
    for (std::size_t i = 0; i < l_.panels.size(); ++i) {
      const auto [begin, end] = l_.panels[i];
      svg.line(in_panel(i, begin - 6, l_.lane[r]), in_panel(i, end + 6, l_.lane[r]), "class=\"lane\"");
      badge(svg, in_panel(i, begin - (l_.down ? 16 : 24), l_.lane[r]), r);
      badge(svg, in_panel(i, end + (l_.down ? 16 : 24), l_.lane[r]), r);
    }
    svg.close();
  }
}

void Drawing::tag(Svg& svg, const DrawnMove& m, const Ink& ink) const {
  const Point middle = at(m.leaves_along, m.leaves_across);
  const Point size = l_.down ? Point{l_.label_across, l_.label_along} : Point{l_.label_along, l_.label_across};
  const bool striped = l_.labelled && m.blocks.size() > 1 && ink.colour == mixed().colour;
  draw_label(svg, middle, size, ink, l_.labelled ? m.label : "", striped ? 1 : 0, l_.font);
  if (!striped) return;
  const double part = (size.x - 6) / static_cast<double>(m.blocks.size());
  for (std::size_t i = 0; i < m.blocks.size(); ++i)
    svg.rect({middle.x - size.x / 2 + 3 + part * static_cast<double>(i), middle.y + size.y / 2 - 3.6}, {part, 2.6}, 0,
             fmt::format("fill=\"{}\"", draw::ink(m.blocks[i]).colour));
}

// A run of several blocks is a line of several colours, as many as a reader can tell apart.
void Drawing::wire(Svg& svg, const DrawnMove& m, const Ink& ink, const std::string& curve) const {
  if (ink.colour != mixed().colour) {
    const std::string_view dashes = ink.outlined ? " stroke-dasharray=\"5 2.4\"" : "";
    return svg.path(curve, fmt::format("class=\"wire\" stroke=\"{}\"{}", ink.colour, dashes));
  }
  const std::size_t parts = std::min<std::size_t>(m.blocks.size(), 4);
  for (std::size_t i = 0; i < parts; ++i)
    svg.path(curve,
             fmt::format("class=\"wire\" stroke=\"{}\" stroke-dasharray=\"6 {}\" stroke-dashoffset=\"{}\"",
                         draw::ink(m.blocks[i * m.blocks.size() / parts]).colour, 6 * (parts - 1), 6 * (parts - i)));
}

// Draws the line from label to mark: straight at first, where it passes between the labels of another column.
void Drawing::tail(Svg& svg, const DrawnMove& m, const Ink& ink) const {
  const double begin = m.leaves_along + l_.label_along / 2;
  const double end = m.arrives_along - l_.mark_size / 2 + (m.adds ? 0.5 : 1.5),
               bend = (end - m.turns_along) * (l_.labelled ? 0.42 : 0.3);
  const Point a = at(begin, m.leaves_across), turn = at(m.turns_along, m.leaves_across);
  const Point b = at(m.turns_along + bend, m.leaves_across), c = at(end - bend, m.arrives_across),
              d = at(end, m.arrives_across);
  const std::string straight = m.turns_along > begin + 0.1 ? fmt::format("L{} {}", number(turn.x), number(turn.y)) : "";
  wire(svg, m, ink,
       fmt::format("M{} {}{}C{} {} {} {} {} {}", number(a.x), number(a.y), straight, number(b.x), number(b.y),
                   number(c.x), number(c.y), number(d.x), number(d.y)));
}

// Draws a send with its one or two ends: the second end is the next move.
void Drawing::move(Svg& svg, std::size_t i) const {
  const std::size_t ends = i + 1 < l_.moves.size() && l_.moves[i + 1].shares ? 2 : 1;
  svg.open("t", w_.moves[i]);
  for (std::size_t e = i; e < i + ends; ++e) tail(svg, l_.moves[e], w_.move_inks[e]);
  tag(svg, l_.moves[i], w_.move_inks[i]);
  for (std::size_t e = i; e < i + ends; ++e) {
    const DrawnMove& m = l_.moves[e];
    draw_arrival(svg, at(m.arrives_along, m.arrives_across), m.adds, w_.move_inks[e].colour, l_.mark_size, l_.down);
  }
  svg.close();
}

void Drawing::local(Svg& svg, std::size_t i) const {
  svg.open("l", w_.locals[i]);
  draw_local(svg, at(l_.locals[i].along, l_.locals[i].across), l_.locals[i].adds, w_.local_inks[i].colour);
  svg.close();
}

}  // namespace

std::string diagram(const DiagramLayout& l, const DiagramWords& w) { return Drawing(l, w).draw(); }

}  // namespace trellis::tools::draw
