// The marks of a diagram, as they stand in it and in its legend.
#pragma once
#include <string_view>

#include "tools/draw/palette.h"
#include "tools/draw/svg.h"

namespace trellis::tools::draw {

// A box that holds the numbers of what leaves; without words it is a dot.
void draw_label(Svg&, Point middle, Point size, const Ink&, std::string_view words, double raised = 0,
                double font = 9.5);
void draw_arrival(Svg&, Point middle, bool adds, std::string_view colour, double size, bool down);
void draw_local(Svg&, Point middle, bool adds, std::string_view colour);

}  // namespace trellis::tools::draw
