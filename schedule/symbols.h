// What a chunk holds, as an expression: nothing, an input chunk of some rank, or a sum of such in a certain order.
// Equal expressions are one symbol, so that symbols compare as numbers; two ranks with the same symbol have the same
// bits.
#pragma once
#include "schedule/schedule.h"

namespace trellis::schedule {

using Symbol = std::uint32_t;

class Symbols {
 public:
  static constexpr Symbol nothing = 0;
  explicit Symbols(const Task&);

  Symbol input(Rank, std::int64_t chunk) const;
  Symbol sum(std::span<const Symbol* const> operands);  // of two operands the order is immaterial, of more it is not

  struct Leaf {
    Rank rank = -1;
    std::int64_t chunk = -1;
    auto operator<=>(const Leaf&) const = default;
  };
  bool is_input(Symbol s) const { return s != nothing && s < first_sum_; }
  Leaf leaf(Symbol) const;
  std::uint32_t terms(Symbol) const;                         // input chunks in it, each as often as it occurs; capped
  std::vector<Leaf> expand(Symbol, std::size_t most) const;  // those, sorted; the first `most` found
  std::vector<Leaf> distinct(Symbol) const;                  // each once, sorted

 private:
  std::span<const Symbol> operands(Symbol) const;
  bool equal(Symbol, std::span<const Symbol>) const;
  void grow();

  std::vector<Symbol> first_leaf_;  // of each rank, and one beyond
  Symbol first_sum_ = 1;
  std::vector<std::uint32_t> begin_{0};  // of each sum's operands, and one beyond
  std::vector<Symbol> operands_;
  std::vector<std::uint32_t> terms_;
  std::vector<Symbol> slots_;  // open hash table over sums
  std::vector<Symbol> sorted_;
};

}  // namespace trellis::schedule
