// Symbolic chunk contents for the proof: nothing, an input chunk of some rank, or a sum of them in a certain order.
// Equal expressions get the same symbol, so comparing numbers is enough. Ranks with the same symbol have the same bits.
#pragma once
#include "schedule/proof/work_budget.h"
#include "schedule/schedule.h"

namespace trellis::schedule {

using Symbol = std::uint32_t;

class SymbolicValues {
 public:
  static constexpr Symbol nothing = 0;
  explicit SymbolicValues(const Task&);

  Symbol input(Rank, std::int64_t chunk) const;
  Symbol sum(std::span<const Symbol* const> operands);  // two operands commute; the order of three or more matters

  struct Leaf {
    Rank rank = -1;
    std::int64_t chunk = -1;
    auto operator<=>(const Leaf&) const = default;
  };
  bool is_input(Symbol s) const { return s != nothing && s < first_sum_; }
  Leaf leaf(Symbol) const;
  std::uint32_t terms(Symbol) const;                         // number of input chunks in it, with repetition; capped
  std::vector<Leaf> expand(Symbol, std::size_t most) const;  // its input chunks, sorted; the first `most` found
  std::vector<Leaf> distinct(Symbol, WorkBudget&) const;     // each input chunk once, sorted
  std::size_t count() const { return first_sum_ + terms_.size(); }

 private:
  std::span<const Symbol> operands(Symbol) const;
  bool equal(Symbol, std::span<const Symbol>) const;
  void grow();

  std::vector<Symbol> first_leaf_;  // per rank, plus an end mark
  Symbol first_sum_ = 1;
  std::vector<std::uint32_t> begin_{0};  // start of each sum's operands, plus an end mark
  std::vector<Symbol> operands_;
  std::vector<std::uint32_t> terms_;
  std::vector<Symbol> slots_;  // open-addressing hash table of sums
  std::vector<Symbol> sorted_;
  mutable std::vector<std::uint32_t> seen_;  // per symbol: the last search that visited it
  mutable std::uint32_t searches_ = 0;
};

}  // namespace trellis::schedule
