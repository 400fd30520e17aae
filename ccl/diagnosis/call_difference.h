// Finds ranks whose call for an operation differs from the call that most ranks made for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ccl/diagnosis/evidence.h"

namespace trellis::ccl {

struct CallDifference {
  std::uint64_t operation = 0;
  std::string call = {}, usual = {};
  std::vector<Rank> ranks = {}, others = {};  // the ranks that made the differing call; those that made the usual one
};

// The first operation in which calls differ.
std::optional<CallDifference> first_difference(const CommunicatorEvidence&);

}  // namespace trellis::ccl
