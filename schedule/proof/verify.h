// The verifier: proves that a schedule computes its collective for all data, sizes and timings, or reports the fault.
#pragma once
#include <optional>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Limits on the memory and work of a proof. A schedule from outside can claim sizes that fit in no memory and
// dependencies too many to follow; such a schedule is refused with the limit that it exceeds.
struct ProofLimits {
  std::int64_t cells = std::int64_t{1} << 26;  // memory chunks of all ranks together
  std::int64_t work = std::int64_t{1} << 30;   // in units of WorkBudget
};

// Where a schedule is wrong, with an explanation for people.
struct Fault {
  Rank rank = -1;           // -1: the schedule as a whole
  std::int64_t step = -1;   // -1: no step in particular
  std::int64_t chunk = -1;  // -1: no chunk in particular
  std::string text;         // names all of the above
};

struct Report {
  std::optional<Fault> fault;
  std::int64_t steps = 0;
  std::int64_t transfers = 0;
  // All ranks add in the same order, so their floating-point results are equal to the bit.
  bool same_bits_everywhere = true;

  bool ok() const { return !fault; }
  std::string text() const;  // one sentence
};

Report verify(const Schedule&, const ProofLimits& most = {});

}  // namespace trellis::schedule
