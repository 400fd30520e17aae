// Where everything of a space-time diagram lies. Each rank is a lane along which time runs; "along" is a distance in
// the direction of time, "across" one from lane to lane, whichever way the picture is turned.
#pragma once
#include <string>
#include <vector>

#include "schedule/wiring.h"

namespace trellis::tools::draw {

// A transfer: a label where it leaves, a line, and a mark where it arrives.
struct Move {
  schedule::StepId send = 0, receive = 0;
  schedule::Rank from = 0, to = 0;
  std::int32_t round = 0;
  std::int32_t channel = 0;
  std::int32_t tag = 0;
  bool adds = false;    // at its arrival
  bool shares = false;  // its send and label are those of the move before: one send with two ends
  std::string label;
  std::vector<std::int64_t> blocks;  // in it, each once
  // Centres of the label and of the mark; and where the line begins to turn.
  double leaves_along = 0, leaves_across = 0;
  double turns_along = 0;
  double arrives_along = 0, arrives_across = 0;
};

struct Local {
  schedule::StepId step = 0;
  schedule::Rank rank = 0;
  std::int32_t round = 0;  // rounds that pass before it
  bool adds = false;
  std::int32_t channel = 0;
  std::int64_t block = 0;
  double along = 0, across = 0;
};

struct Scene {
  schedule::Rank ranks = 0;
  schedule::Rank group = 0;          // ranks that belong together, as on one host; 0: no groups
  std::int32_t first = 1, last = 0;  // the rounds that are shown
  std::vector<Move> moves;
  std::vector<Local> locals;
};

struct Band {
  double begin = 0, end = 0;
};

struct Layout {
  bool down = false;                         // time runs down, lanes lie side by side; else time runs right
  bool labelled = true;                      // transfers have room for their labels
  double font = 9.5;                         // of the labels
  double label_along = 0, label_across = 0;  // size of a label
  double pitch = 0;                          // across, from one label to the next
  std::int32_t columns = 1;                  // that labels which leave together stand in, by turns
  double mark_size = 11;                     // of an arrival
  double across = 0;                         // from the first lane to the last
  std::vector<Band> panels;                  // along: what stands in one row, as lines of music do; the next below it
  std::vector<double> lane;                  // across, by rank: the middle
  std::vector<Band> rounds;                  // along: the shown ones
  std::vector<Move> moves;
  std::vector<Local> locals;
};

inline constexpr double label_height = 15, dot = 7;
double text_width(std::string_view, double font_size);  // an upper estimate, for any common font

Layout arrange(const Scene&, bool down);

}  // namespace trellis::tools::draw
