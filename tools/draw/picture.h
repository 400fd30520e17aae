// A schedule as a space-time diagram in SVG: ranks as lanes, time in rounds, transfers as arrows.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "tools/request_options.h"

namespace trellis::tools::draw {

enum class Colours { automatic, data, channel, sender };  // what they tell

inline constexpr std::int32_t all_channels = -1;

struct Wish {
  std::optional<Span> rounds = {};       // all of them
  Colours colours = Colours::automatic;  // the data, or the sender where all data is one chunk
  bool down = false;                     // time runs down and not right
  // Only this channel's steps; all_channels for all, and if none is named, the first where all would be a thicket.
  std::optional<std::int32_t> channel = {};
  std::vector<schedule::Rank> dims = {};  // the machine's shape, where it is known
};

// Throws std::invalid_argument when the schedule can't be followed, or would make a picture that nobody can read.
std::string picture(const schedule::Schedule&, const Wish&);

}  // namespace trellis::tools::draw
