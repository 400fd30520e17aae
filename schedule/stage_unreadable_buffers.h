// Peers read shared buffers directly, so no copy is sent. For buffers that peers can't read, this rewrites a rank's
// program to use scratch, which they can read. Output that is also sent is computed in scratch. Original data that is
// sent more than once is copied to scratch once.
#pragma once
#include "schedule/schedule.h"

namespace trellis::schedule {

// The buffers that peers can't read.
struct UnreadableBuffers {
  bool input = false, output = false;
  bool any() const { return input || output; }
  bool operator==(const UnreadableBuffers&) const = default;
};

struct StagedProgram {
  Program program;
  std::vector<std::int32_t> origins;  // per new step: the old step that it is, or that it serves
};

// The new program sends the same messages and has the same result, whatever is unreadable on other ranks. Output is not
// staged if some step would then read or write across two buffers. Nothing is staged if a slice of the program already
// lies in two buffers.
StagedProgram stage_unreadable_buffers(const Task&, Rank, const Program&, UnreadableBuffers);
Schedule stage_unreadable_buffers(const Schedule&, UnreadableBuffers);  // for every rank

}  // namespace trellis::schedule
