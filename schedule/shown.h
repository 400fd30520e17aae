// What peers can read where it lies, they need not be sent copies of. This rewrites a rank's program for buffers that
// they can't read, and scratch that they can: what it makes in the output and sends, it makes in scratch; and what it
// sends more than once of what it was given, it copies there once.
#pragma once
#include "schedule/schedule.h"

namespace trellis::schedule {

// The buffers that peers can't read.
struct Hidden {
  bool input = false, output = false;
  bool any() const { return input || output; }
  bool operator==(const Hidden&) const = default;
};

struct Shown {
  Program program;
  std::vector<std::int32_t> origins;  // of each step: the one that it is, or serves, in the program as it was
};

// Does the same, by the same messages, whatever is hidden on the other ranks. The output stays where it is when a step
// would have to read or write in two buffers at once; everything does when a slice lies in two as it is.
Shown shown(const Task&, Rank, const Program&, Hidden);
Schedule shown(const Schedule&, Hidden);  // of every rank

}  // namespace trellis::schedule
