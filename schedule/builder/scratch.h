// Allocates scratch chunks: assigns their final numbers and reuses memory whose content is no longer needed.
#pragma once
#include <map>

#include "schedule/schedule.h"

namespace trellis::schedule {

// The data chunk that gives each scratch chunk its size, where known; stored by runs.
class ScratchSizes {
 public:
  void note(const Slice&, std::int64_t like);  // the first note wins; later ones must agree with it
  std::vector<ScratchSize> of(std::int32_t first, std::int32_t end) const;

 private:
  std::map<std::int32_t, ScratchSize> runs_;  // by first chunk
};

// Data chunks `period` apart are equally large; rounds[i] is the round of step i. Adds the dependencies that reuse
// needs. A run of chunks is reused only some steps after its last read, so that pipelines don't stall, and in a later
// round: within one round, a step that waits for another step of its rank can close a circular wait across ranks.
void pack_scratch(Program&, std::span<const std::int32_t> rounds, const ScratchSizes&, std::int64_t period);

}  // namespace trellis::schedule
