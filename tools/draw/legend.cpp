#include "tools/draw/legend.h"

#include <algorithm>

#include "tools/draw/glyphs.h"
#include "tools/draw/layout.h"

namespace trellis::tools::draw {
namespace {

constexpr double line_height = 23, font = 11, gap = 16;
constexpr std::string_view neutral = "#6b7480";

// Sets one item after the other, and begins a new line where one would not fit.
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

}  // namespace

double draw_legend(Svg* svg, const Legend& legend, Point corner, double width) {
  Cursor cursor(corner, width);
  if (!legend.colours.empty()) colours(svg, legend, cursor);
  const auto item = [&](bool present, std::string_view text, auto glyph) {
    if (!present) return;
    const Point at = cursor.take(24 + text_width(text, font));
    if (!svg) return;
    glyph(Point{at.x + 9, at.y});
    words(*svg, {at.x + 24, at.y}, text, "class=\"dim\"");
  };
  const bool moves = legend.puts || legend.adds;
  item(moves && legend.labelled, "sent: the numbers of its chunks", [&](Point p) {
    draw_label(*svg, p, {18, label_height}, {neutral, "#ffffff"}, "3");
  });
  item(moves && !legend.labelled, "sent", [&](Point p) { draw_label(*svg, p, {dot, dot}, {neutral, "#ffffff"}, ""); });
  item(legend.puts, "received", [&](Point p) { draw_arrival(*svg, p, false, neutral, 11, legend.down); });
  item(legend.adds, "received and added", [&](Point p) { draw_arrival(*svg, p, true, neutral, 11, legend.down); });
  item(legend.copies, "copied within the rank", [&](Point p) { draw_local(*svg, p, false, neutral); });
  item(legend.sums, "summed within the rank", [&](Point p) { draw_local(*svg, p, true, neutral); });
  return cursor.height();
}

}  // namespace trellis::tools::draw
