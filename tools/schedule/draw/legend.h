// The legend of a diagram: the meaning of its colours and marks, in lines as wide as the diagram.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tools/picture/palette.h"
#include "tools/picture/svg.h"

namespace trellis::tools::draw {

struct Legend {
  std::string colours_mean;
  std::vector<std::pair<Ink, std::string>> colours;
  bool puts = false, adds = false, copies = false, sums = false;  // which marks occur
  std::string labels_mean, example;  // "the numbers of its chunks", "3"; empty: labels are dots
  bool outlined = false;             // some colours occur in outline, too
  bool shared = false;               // some sends have two ends
  bool down = false;
};

// Draws the legend and returns its height; without an Svg it only measures.
double draw_legend(Svg*, const Legend&, Point corner, double width);

}  // namespace trellis::tools::draw
