// Which algorithm serves a call: a table from measurement, by machine, collective, ranks, bytes and
// type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dtype.h"
#include "schedule/way.h"

namespace trellis::ccl {

using Choice = schedule::Way;

// One line of a table: from so many bytes on (of the larger buffer), until the next line of the same group.
struct Rule {
  schedule::Collective collective = schedule::Collective::all_reduce;
  schedule::Rank ranks = 1;
  std::uint64_t from_bytes = 0;
  Choice choice;
  std::optional<kernels::DType> type = {};  // none: every type that has no rules of its own
  std::string machine = "*";                // "*": every machine, where its own rules do not serve
};
std::string text_of(const Rule&);  // as in a table, below the line with its machine

inline constexpr const char* any_machine = "*";
void expect_machine(std::string_view name);  // throws invalid_argument unless it is a name, or "*"

class Selections {
 public:
  static Selections read(std::string_view text);  // throws invalid_argument with the line at fault
  static const Selections& built_in();

  // What serves best, and then what serves where that can't: the machine's rules, and after them those of any machine.
  // Of either those for these ranks, or for the nearest number of ranks that has some; the last that begins at or below
  // `bytes`, those of the type first. Empty when the table has none for the collective.
  std::vector<Choice> choices(schedule::Collective, schedule::Rank ranks, std::uint64_t bytes, kernels::DType,
                              std::string_view machine) const;
  // The number of ranks whose rules serve so many; 0: the machine has none for the collective.
  schedule::Rank nearest(schedule::Collective, schedule::Rank ranks, std::string_view machine) const;
  std::string text() const;  // what read() takes
  const std::vector<Rule>& rules() const { return rules_; }
  void add(Rule);  // keeps them sorted

 private:
  std::vector<Rule> rules_;
};

}  // namespace trellis::ccl
