#include "tools/schedule/draw/legend.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/schedule/draw/diagram_layout.h"
#include "tools/schedule/draw/glyphs.h"

namespace trellis::tools::draw {
namespace {

constexpr double line_height = 23, font = 11, gap = 16;
constexpr std::string_view neutral = "#6b7480";

// Places one item after the other, and begins a new line when one would not fit.
class Cursor {
 public:
  Cursor(Point corner, double width) : corner_(corner), width_(width), at_{corner.x, corner.y + line_height / 2} {}

  Point take(double wide, double after = gap) {
    if (at_.x > corner_.x && at_.x + wide > corner_.x + width_) next_line();
    const Point here = at_;
    at_.x += wide + after;
    return here;
  }
  void next_line() { at_ = {corner_.x, at_.y + line_height}; }
  double height() const { return at_.y + line_height / 2 - corner_.y; }

 private:
  Point corner_;
  double width_;
  Point at_;
};

void words(Svg& svg, Point at, std::string_view text, std::string_view kind) {
  svg.text({at.x, at.y + 4}, text, std::string(kind) + " font-size=\"11\"");
}

void colours(Svg* svg, const Legend& legend, Cursor& cursor) {
  const Point title = cursor.take(text_width(legend.colours_mean, font), 10);
  if (svg) words(*svg, title, legend.colours_mean, "class=\"dim\"");
  for (const auto& [ink, name] : legend.colours) {
    const double wide = std::max(22.0, text_width(name, 9.5) + 10);
    const Point at = cursor.take(wide, 6);
    if (svg) draw_label(*svg, {at.x + wide / 2, at.y}, {wide, label_height}, ink, name);
  }
  cursor.next_line();
}

void draw_two_tails(Svg& svg, Point p) {
  const std::string_view line = "class=\"wire\" stroke=\"#6b7480\"";
  svg.path(fmt::format("M{} {}c6 0 4 -5 10 -5", number(p.x - 1), number(p.y)), line);
  svg.path(fmt::format("M{} {}c6 0 4 5 10 5", number(p.x - 1), number(p.y)), line);
  draw_label(svg, {p.x - 4, p.y}, {10, 10}, {neutral, "#ffffff"}, "");
}

void draw_outlined(Svg& svg, Point p) {
  svg.path(fmt::format("M{} {}h16", number(p.x + 9), number(p.y)),
           "class=\"wire\" stroke=\"#6b7480\" stroke-dasharray=\"5 2.4\"");
  draw_label(svg, p, {18, label_height}, {neutral, "#ffffff", true}, "8");
}

}  // namespace

double draw_legend(Svg* svg, const Legend& legend, Point corner, double width) {
  Cursor cursor(corner, width);
  if (!legend.colours.empty()) colours(svg, legend, cursor);
  const auto item = [&](bool present, std::string_view text, auto glyph, double wide = 18) {
    if (!present) return;
    const Point at = cursor.take(wide + 6 + text_width(text, font));
    if (!svg) return;
    glyph(Point{at.x + 9, at.y});
    words(*svg, {at.x + wide + 6, at.y}, text, "class=\"dim\"");
  };
  const bool moves = legend.puts || legend.adds;
  const bool labelled = !legend.example.empty();
  const double label_width = std::max(18.0, text_width(legend.example, 9.5) + 8);
  item(
      moves && labelled, "sent: " + legend.labels_mean,
      [&](Point p) {
        draw_label(*svg, {p.x - 9 + label_width / 2, p.y}, {label_width, label_height}, {neutral, "#ffffff"},
                   legend.example);
      },
      label_width);
  item(moves && !labelled, "sent", [&](Point p) { draw_label(*svg, p, {dot, dot}, {neutral, "#ffffff"}, ""); });
  item(legend.shared, "one read, sent to two", [&](Point p) { draw_two_tails(*svg, p); });
  item(
      legend.outlined, "outlined, dashed: from 8 on the colours come again", [&](Point p) { draw_outlined(*svg, p); },
      34);
  item(legend.puts, "received", [&](Point p) { draw_arrival(*svg, p, false, neutral, 11, legend.down); });
  item(legend.adds, "received and added", [&](Point p) { draw_arrival(*svg, p, true, neutral, 11, legend.down); });
  item(legend.copies, "copied within the rank", [&](Point p) { draw_local(*svg, p, false, neutral); });
  item(legend.sums, "summed within the rank", [&](Point p) { draw_local(*svg, p, true, neutral); });
  return cursor.height();
}

}  // namespace trellis::tools::draw
