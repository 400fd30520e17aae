// The verifier: proves that a schedule computes its collective for all data, sizes and timings, or reports the fault.
#pragma once
#include "schedule/proof/proof_limits.h"
#include "schedule/proof/wiring.h"

namespace trellis::schedule {

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
