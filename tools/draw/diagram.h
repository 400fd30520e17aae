// Draws what is arranged: lanes, rounds, transfers, local steps, and the words around them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tools/draw/layout.h"
#include "tools/draw/palette.h"
#include "tools/draw/svg.h"

namespace trellis::tools::draw {

// What the diagram says besides its geometry.
struct Words {
  std::string heading;
  std::vector<std::string> facts;                          // under the heading, one after the other
  std::vector<std::pair<std::string, std::string>> lanes;  // by rank: its name, and its coordinates if it has some
  std::vector<std::string> moves, locals;                  // what a hover over each says
  std::vector<Ink> move_inks, local_inks;
  std::string labels_mean, label_example;  // what the numbers on labels are, and one; empty when there are none
  std::string colours_mean;                // before the colours in the legend
  std::vector<std::pair<Ink, std::string>> colours;
  std::int32_t first_round = 1;
};

std::string diagram(const Layout&, const Words&);

}  // namespace trellis::tools::draw
