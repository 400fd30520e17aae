// The verifier's result for a schedule, in words.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schedule/proof/verify.h"
#include "tools/schedule/request_options.h"

namespace trellis::tools {

struct ProofReport {
  std::string of;  // the schedule, in words
  schedule::Rank ranks = 0;
  std::int64_t steps = 0;
  std::int64_t transfers = 0;
  std::vector<std::string> proved;   // one sentence each
  std::vector<std::string> sampled;  // what was only checked by samples; empty when all is proved
  std::vector<std::string> limits;   // what was not checked; empty when all is proved
  std::string fault;                 // empty when there is none
  bool ok() const { return fault.empty(); }
  std::string text() const;
};

ProofReport prove(const schedule::Schedule&, std::string of);

// Proves the whole schedule, or when folded, the symmetry classes of ranks. Programs made for one rank alone are
// compared with the whole. Throws std::invalid_argument when the algorithm refuses the request.
ProofReport prove(const AlgorithmRequest&, bool folded);

}  // namespace trellis::tools
