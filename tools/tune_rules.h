// From measurements to the rules of a selection table, and from a table to why it selects what it does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ccl/selector.h"
#include "tools/tune_candidates.h"

namespace trellis::tools {

struct SizeCosts {
  std::uint64_t bytes = 0;
  std::vector<Cost> costs;  // the cheapest first
};

inline constexpr double worth_changing = 0.03;  // of the time, for another algorithm than at the size before

// Which choice a size gets, when its smaller neighbour got `incumbent` (null: there is none): the cheapest, if it is
// better by so much. Null: nothing was measured.
const Cost* winner(const std::vector<Cost>&, const ccl::Choice* incumbent);

// The rules, of any machine, for sizes that rise; the first begins at 0 bytes. Neighbours with one winner are one rule.
std::vector<ccl::Rule> rules_for(schedule::Collective, ccl::Rank ranks, const std::vector<SizeCosts>&);

// Why a table serves so many bytes on that machine by `selected`, in a sentence.
std::string reason(const ccl::Selections&, schedule::Collective, ccl::Rank ranks, std::uint64_t bytes, kernels::DType,
                   std::string_view machine, const ccl::Choice& selected);

// "8..16MB": by powers of two; "8,4KB,1MB". Rising, each once. Throws invalid_argument.
std::vector<std::uint64_t> parse_sizes(std::string_view);

}  // namespace trellis::tools
