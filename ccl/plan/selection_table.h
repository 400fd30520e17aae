// Algorithm selection: a table of measured configs by machine, collective, ranks, bytes and type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types/dtype.h"
#include "schedule/algorithms/algorithm_config.h"

namespace trellis::ccl {

using schedule::AlgorithmConfig;

// One line of a table. It applies from `from_bytes` bytes (of the larger buffer) up to the next line of the same group.
struct SelectionRule {
  schedule::Collective collective = schedule::Collective::all_reduce;
  schedule::Rank ranks = 1;
  std::uint64_t from_bytes = 0;
  AlgorithmConfig config;
  std::optional<kernels::DType> type = {};  // none: for all types without their own rules
  std::string machine = "*";                // "*": for any machine, where its own rules do not serve
  int cores = 0;  // measured where the ranks had no more cores than these; 0: it holds on any number
};
std::string text_of(const SelectionRule&);  // a table's line, to stand below the line with its machine

inline constexpr const char* any_machine = "*";
void expect_machine(std::string_view name);  // throws invalid_argument unless it is a valid name or "*"

class SelectionTable {
 public:
  // Throws invalid_argument with the line at fault, and for a truncated text: a table's last line is `end`.
  static SelectionTable read(std::string_view text);
  // The same; messages start with the file's name. Also throws for a table without rules, and system_error when the
  // file cannot be read.
  static SelectionTable from_file(const std::string& path);
  static const SelectionTable& built_in();

  // Candidates, best first: of the machine's rules, then of those for any machine. Each uses the rules for this number
  // of ranks, or for the nearest number that has some: those that begin at or below `bytes`, the last one first, but
  // rules for the type before the others. The ranks have `cores`. Rules measured with at least as many come first,
  // those with the fewest leading; then rules that hold on any number; then rules measured with fewer, those with the
  // most leading. Empty when the table has no rules for the collective.
  std::vector<SelectionRule> candidates(schedule::Collective, schedule::Rank ranks, std::uint64_t bytes, kernels::DType,
                                        std::string_view machine, int cores) const;
  // The number of ranks whose rules are used for `ranks`; 0: the machine has none for the collective.
  schedule::Rank nearest(schedule::Collective, schedule::Rank ranks, std::string_view machine) const;
  // SelectionRule::cores of the rules that candidates() prefers. For sizes at which there are none of these, it starts
  // with others.
  int measured_cores(schedule::Collective, schedule::Rank ranks, std::string_view machine, int cores) const;
  std::string text() const;  // in the form that read() accepts
  const std::vector<SelectionRule>& rules() const { return rules_; }
  void add(SelectionRule);  // keeps the rules sorted

 private:
  std::vector<int> measured_with(schedule::Collective, schedule::Rank ranks, std::string_view machine, int cores) const;

  std::vector<SelectionRule> rules_;
};

}  // namespace trellis::ccl
