// Whose contributions each value of a program is the sum of, and which values some rank sends. Where sending rounds,
// such a value is rounded alike on every rank that has it: when it is made, or when a contribution is first read.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace trellis::ccl {

// Of one chunk whose value is not rounded yet, as the caller gave it or a step has just added it up. Of any other chunk
// nothing need be known.
struct Origin {
  std::uint64_t of = 0;    // stands for the ranks whose contributions are in it, whatever their order; 0: not known
  std::int32_t chunk = 0;  // of the input of each of them
  bool rounds = false;     // some rank sends it
  bool operator==(const Origin&) const = default;
};

// Of the chunks that a step reads, and of those that it makes by adding.
struct StepOrigins {
  std::vector<Origin> from, to;
  std::vector<std::vector<Origin>> further;  // sources of a reduce
};

struct Origins {
  std::vector<StepOrigins> steps;
  std::vector<Origin> output;  // as the last step leaves it
};

std::uint64_t origin_of(schedule::Rank);  // of what that rank contributes

// One rank's, by a walk through all ranks' programs. Throws invalid_argument when the schedule can't be followed.
Origins origins_of(const schedule::Schedule&, schedule::Rank);

}  // namespace trellis::ccl
