// For each value of a program: which ranks' contributions it is the sum of, and whether any rank sends it. Where
// sending rounds values, one that is sent is rounded in the same way on every rank that has it: when it is made, or
// when a contribution is first read.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace trellis::ccl {

// Describes one chunk whose value is not rounded yet: the caller's, or one that a step has just added up. For other
// chunks, all members have their defaults.
struct ChunkContributors {
  std::uint64_t of = 0;    // hash of the set of contributing ranks, independent of their order; 0: not known
  std::int32_t chunk = 0;  // chunk of the input of each contributing rank
  bool rounds = false;     // some rank sends it, so it is rounded
  bool operator==(const ChunkContributors&) const = default;
};

// The contributors to the chunks that a step reads (`from`, `further`), and to those that it makes by adding (`to`).
struct StepContributors {
  std::vector<ChunkContributors> from, to;
  std::vector<std::vector<ChunkContributors>> further;  // sources of a reduce
};

struct ProgramContributors {
  std::vector<StepContributors> steps;
  std::vector<ChunkContributors> output;  // after the last step
};

std::uint64_t origin_of(schedule::Rank);  // the hash of that rank's own contribution

// The contributors to one rank's values, found by a walk through all ranks' programs. Throws invalid_argument when the
// walk fails on the schedule.
ProgramContributors origins_of(const schedule::Schedule&, schedule::Rank);

}  // namespace trellis::ccl
