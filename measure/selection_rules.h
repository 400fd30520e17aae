// Makes the rules of a selection table from measurements, and explains why a table selects an algorithm.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/plan/selection_table.h"
#include "measure/algorithm_contest.h"

namespace trellis::measure {

struct SizeCosts {
  std::uint64_t bytes = 0;
  std::vector<CandidateCost> costs;  // the cheapest first
};

// The rules, for any machine, of ascending sizes. The first begins at 0 bytes. Adjacent sizes with the same winner
// become one rule.
std::vector<ccl::SelectionRule> rules_for(schedule::Collective, ccl::Rank ranks, const std::vector<SizeCosts>&);

// One sentence on why this is selected for so many bytes on that machine: by a rule of the table, or by the model of
// the host.
std::string reason(const ccl::SelectionTable&, schedule::Collective, ccl::Rank ranks, std::uint64_t bytes,
                   kernels::DType, std::string_view machine, const ccl::Selected&);

// "8..16MB": each size is twice the one before; or "8,4KB,1MB". Ascending, without duplicates. Throws invalid_argument.
std::vector<std::uint64_t> parse_sizes(std::string_view);

}  // namespace trellis::measure
