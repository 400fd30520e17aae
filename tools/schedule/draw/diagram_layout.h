// The layout of a space-time diagram. Each rank is a lane along which time runs. "along" is a distance in the direction
// of time, "across" a distance between lanes, for either orientation of the picture.
#pragma once
#include <string>
#include <vector>

#include "schedule/proof/step_wiring.h"

namespace trellis::tools::draw {

// A transfer: a label at its start, a line, and a mark at its arrival.
struct DrawnMove {
  schedule::StepId send = 0, receive = 0;
  schedule::Rank from = 0, to = 0;
  std::int32_t round = 0;
  std::int32_t channel = 0;
  std::int32_t tag = 0;
  bool adds = false;    // the receiver adds what arrives
  bool shares = false;  // uses the send and label of the move before: one send with two ends
  std::string label;
  std::vector<std::int64_t> blocks;  // blocks in it, each once
  // Centres of the label and of the mark, and the point where the line begins to turn.
  double leaves_along = 0, leaves_across = 0;
  double turns_along = 0;
  double arrives_along = 0, arrives_across = 0;
};

struct DrawnLocalStep {
  schedule::StepId step = 0;
  schedule::Rank rank = 0;
  std::int32_t round = 0;  // number of rounds that pass before it
  bool adds = false;
  std::int32_t channel = 0;
  std::int64_t block = 0;
  double along = 0, across = 0;
};

struct Scene {
  schedule::Rank ranks = 0;
  schedule::Rank group = 0;          // number of ranks that belong together, as on one host; 0: no groups
  std::int32_t first = 1, last = 0;  // the rounds that are shown
  std::vector<DrawnMove> moves;
  std::vector<DrawnLocalStep> locals;
};

struct Band {
  double begin = 0, end = 0;
};

struct DiagramLayout {
  bool down = false;                         // time runs down, lanes are side by side; else time runs right
  bool labelled = true;                      // transfers have room for their labels
  double font = 9.5;                         // of the labels
  double label_along = 0, label_across = 0;  // size of a label
  double pitch = 0;                          // across, from one label to the next
  std::int32_t columns = 1;                  // columns in which labels of transfers that leave together stand, in turn
  double mark_size = 11;                     // of an arrival
  double across = 0;                         // from the first lane to the last
  std::vector<Band> panels;  // along: what is drawn in one row, like a line of music; the next panel is below
  std::vector<double> lane;  // across, by rank: the middle of the lane
  std::vector<Band> rounds;  // along: the shown rounds
  std::vector<DrawnMove> moves;
  std::vector<DrawnLocalStep> locals;
};

inline constexpr double label_height = 15, dot = 7;
double text_width(std::string_view, double font_size);  // an upper estimate, for any common font

DiagramLayout arrange(const Scene&, bool down);

}  // namespace trellis::tools::draw
