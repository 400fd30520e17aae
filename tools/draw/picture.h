// A schedule as a space-time diagram in SVG: ranks as lanes, time in rounds, transfers as arrows.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "tools/request_options.h"

namespace trellis::tools::draw {

enum class Colours { automatic, data, channel, sender };  // what they tell

struct Wish {
  std::optional<Span> rounds = {};        // all of them
  Colours colours = Colours::automatic;   // the data, or the sender where all data is one chunk
  bool down = false;                      // time runs down and not right
  std::vector<schedule::Rank> dims = {};  // the machine's shape, where it is known
};

// Throws std::invalid_argument when the schedule can't be followed, or would make a picture that nobody can read.
std::string picture(const schedule::Schedule&, const Wish&);

}  // namespace trellis::tools::draw
