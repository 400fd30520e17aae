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

// Data chunks `period` apart are equally large. Adds the order that sharing needs. A run of chunks is used again only
// some steps after it was last read, so that a pipeline does not stall on it.
void pack_scratch(Program&, const Labels&, std::int64_t period);

}  // namespace trellis::schedule
