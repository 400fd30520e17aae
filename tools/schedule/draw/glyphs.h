// The marks of a diagram, drawn alike in the diagram and its legend.
#pragma once
#include <string_view>

#include "tools/picture/palette.h"
#include "tools/picture/svg.h"

namespace trellis::tools::draw {

// A box with the numbers of the chunks that leave; without text, a dot.
void draw_label(Svg&, Point middle, Point size, const Ink&, std::string_view words, double raised = 0,
                double font = 9.5);
void draw_arrival(Svg&, Point middle, bool adds, std::string_view colour, double size, bool down);
void draw_local(Svg&, Point middle, bool adds, std::string_view colour);

}  // namespace trellis::tools::draw
