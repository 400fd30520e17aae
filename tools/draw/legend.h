// What the colours and marks of a diagram mean, in lines that are as wide as the diagram.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tools/draw/palette.h"
#include "tools/draw/svg.h"

namespace trellis::tools::draw {

struct Legend {
  std::string colours_mean;
  std::vector<std::pair<Ink, std::string>> colours;
  bool puts = false, adds = false, copies = false, sums = false;  // which marks there are
  std::string labels_mean, example;  // "the numbers of its chunks", "3"; empty: labels are dots
  bool outlined = false;             // some colours come again in outline
  bool shared = false;               // some sends have two ends
  bool down = false;
};

// Draws it and returns its height; with no Svg it only measures.
double draw_legend(Svg*, const Legend&, Point corner, double width);

}  // namespace trellis::tools::draw
