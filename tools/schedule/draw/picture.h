// A schedule as a space-time diagram in SVG: ranks as lanes, time in rounds, transfers as arrows.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "tools/schedule/request_options.h"

namespace trellis::tools::draw {

enum class ColourBy { automatic, data, channel, sender };  // what colours stand for

inline constexpr std::int32_t all_channels = -1;

struct DrawOptions {
  std::optional<IndexSpan> rounds = {};    // none: all of them
  ColourBy colours = ColourBy::automatic;  // by data, or by sender when all data is one chunk
  bool down = false;                       // time runs down instead of right
  // Only this channel's steps; all_channels: all. None: all, or the first channel when all would be unreadable.
  std::optional<std::int32_t> channel = {};
  std::vector<schedule::Rank> dims = {};  // the machine's shape, when it is known
};

// Throws std::invalid_argument when the schedule can't be followed, or the picture would be unreadable.
std::string picture(const schedule::Schedule&, const DrawOptions&);

}  // namespace trellis::tools::draw
