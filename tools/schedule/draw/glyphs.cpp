#include "tools/schedule/draw/glyphs.h"

#include <fmt/format.h>

#include "tools/schedule/draw/diagram_layout.h"

namespace trellis::tools::draw {
namespace {

void plus(Svg& svg, Point p, double reach, std::string_view colour) {
  svg.path(fmt::format("M{} {}h{}M{} {}v{}", number(p.x - reach), number(p.y), number(2 * reach), number(p.x),
                       number(p.y - reach), number(2 * reach)),
           fmt::format("stroke=\"{}\" stroke-width=\"1.5\" fill=\"none\"", colour));
}

}  // namespace

void draw_label(Svg& svg, Point middle, Point size, const Ink& ink, std::string_view words, double raised,
                double font) {
  const std::string frame = ink.outlined ? fmt::format("class=\"open\" stroke=\"{}\" stroke-width=\"1.5\"", ink.colour)
                                         : fmt::format("fill=\"{}\"", ink.colour);
  svg.rect({middle.x - size.x / 2, middle.y - size.y / 2}, size, words.empty() ? 2 : 4, frame);
  if (words.empty()) return;
  const std::string fill = ink.outlined ? "" : fmt::format(" style=\"fill:{}\"", ink.text);
  svg.text({middle.x, middle.y + font * 0.36 - raised}, words,
           fmt::format("font-size=\"{}\" text-anchor=\"middle\"{}", font, fill));
}

// An arrow head where data is written, a plus in a circle where it is added.
void draw_arrival(Svg& svg, Point p, bool adds, std::string_view colour, double size, bool down) {
  if (adds) {
    svg.circle(p, size / 2 - 0.5, fmt::format("class=\"open\" stroke=\"{}\" stroke-width=\"1.6\"", colour));
    return plus(svg, p, size / 4, colour);
  }
  const double tip = size / 2, half = size * 0.4;
  const std::string head = down ? fmt::format("M{} {}l{} {}h{}z", number(p.x), number(p.y + tip), number(-half),
                                              number(-size), number(2 * half))
                                : fmt::format("M{} {}l{} {}v{}z", number(p.x + tip), number(p.y), number(-size),
                                              number(-half), number(2 * half));
  svg.path(head, fmt::format("style=\"fill:{}\"", colour));
}

void draw_local(Svg& svg, Point p, bool adds, std::string_view colour) {
  svg.rect({p.x - 4.5, p.y - 4.5}, {9, 9}, 1.5,
           fmt::format("class=\"open\" stroke=\"{}\" stroke-width=\"1.6\"", colour));
  if (adds) plus(svg, p, 2.8, colour);
}

}  // namespace trellis::tools::draw
