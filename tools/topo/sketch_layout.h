// The layout of every topology picture, of a host and of a simulated machine: shapes, wires and words at their places.
// Sketches are put beside each other or framed, and then drawn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/machine/machine.h"
#include "tools/picture/svg.h"

namespace trellis::tools {

using draw::Point;

struct DrawnShape {
  // `core` shows lines, `unit` contains others; `rank` and `unused` lie in a core.
  enum class Kind : std::uint8_t { chip, unit, box, node, port, core, rank, unused } kind = Kind::chip;
  Point at, size;  // at: the corner
  std::string label, below;
  std::string title = {};                     // shown on hover
  std::vector<sim::ResourceId> inside = {};   // what it stands for
  std::vector<std::string> lines = {};        // of a core, the first one bold
  std::string css = {}, fill = {}, ink = {};  // more classes; attributes of the rectangle and of the label
  std::string_view group = "shape";           // class of the group that it is drawn in
};

struct DrawnWire {
  std::vector<Point> points;  // two: a straight line; four: a curve; more: a line with round corners
  std::vector<sim::ResourceId> resources;
  int layer = 0;
  bool bundle = false, cut = false;  // bundle: stands for several wires; cut: something is left out along it
};

struct PlacedText {
  Point at;
  std::string text;
  bool centred = true;
};

struct Sketch {
  Point size;
  std::vector<DrawnShape> shapes;
  std::vector<DrawnWire> wires;
  std::vector<PlacedText> words;

  void add(Sketch other, Point at);
};

// Puts sketches side by side, in rows that are at most so wide.
Sketch in_rows(std::vector<Sketch>, double gap, double most_wide);
// Puts sketches into a grid, centred, whose columns and rows are as large as their largest sketch, with a margin around
// all. `corners`: where each sketch was put.
Sketch in_grid(std::vector<Sketch>, std::size_t across, double gap, double margin, std::vector<Point>& corners);
// Puts a sketch inside a unit with this label.
Sketch in_frame(Sketch inner, const std::string& label, double padding);

void draw_shape(draw::Svg&, const DrawnShape&);

}  // namespace trellis::tools
