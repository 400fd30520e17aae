// Gives scratch chunks their final numbers, so that memory whose content is spent is used again.
#pragma once
#include <map>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Which data chunk each scratch chunk is as large as, as far as anyone has said; kept by runs.
class Labels {
 public:
  void note(const Slice&, std::int64_t like);  // the first word counts: later ones can only repeat it
  std::vector<Room> of(std::int32_t first, std::int32_t end) const;

 private:
  std::map<std::int32_t, Room> runs_;  // by first chunk
};

// Data chunks `period` apart are equally large; rounds[i] is the round of step i. Adds the order that sharing needs. A
// run of chunks is used again only some steps after it was last read, so that a pipeline does not stall on it, and in a
// later round, since within one a wait of a rank for itself can close a circle of ranks.
void pack_scratch(Program&, std::span<const std::int32_t> rounds, const Labels&, std::int64_t period);

}  // namespace trellis::schedule
