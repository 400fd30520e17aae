// Draws a laid-out diagram: lanes, rounds, transfers, local steps, and the text around them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tools/picture/palette.h"
#include "tools/picture/svg.h"
#include "tools/schedule/draw/diagram_layout.h"

namespace trellis::tools::draw {

// The text of the diagram.
struct DiagramWords {
  std::string heading;
  std::vector<std::string> facts;                          // below the heading, one after the other
  std::vector<std::pair<std::string, std::string>> lanes;  // by rank: its name, and its coordinates if it has any
  std::vector<std::string> moves, locals;                  // text shown on hover, for each
  std::vector<Ink> move_inks, local_inks;
  std::string labels_mean,
      label_example;         // the meaning of the numbers on labels, and an example; empty when there are no numbers
  std::string colours_mean;  // text before the colours in the legend
  std::vector<std::pair<Ink, std::string>> colours;
  std::int32_t first_round = 1;
};

std::string diagram(const DiagramLayout&, const DiagramWords&);

}  // namespace trellis::tools::draw
