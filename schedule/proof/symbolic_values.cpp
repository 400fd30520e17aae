#include "schedule/proof/symbolic_values.h"

#include <algorithm>
#include <stdexcept>

namespace trellis::schedule {
namespace {

constexpr std::uint32_t most_terms = 1u << 31;

std::size_t hash(std::span<const Symbol> operands) {
  std::uint64_t h = operands.size();
  for (Symbol s : operands) {
    h = (h ^ s) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 29;
  }
  return static_cast<std::size_t>(h);
}

}  // namespace

SymbolicValues::SymbolicValues(const Task& task) {
  first_leaf_.push_back(1);
  std::uint64_t next = 1;
  for (Rank r = 0; r < task.ranks; ++r) {
    next += static_cast<std::uint64_t>(input_chunks(task, r));
    if (next >= most_terms) throw std::invalid_argument("too many input chunks to follow one by one");
    first_leaf_.push_back(static_cast<Symbol>(next));
  }
  first_sum_ = static_cast<Symbol>(next);
  slots_.assign(1024, nothing);
}

Symbol SymbolicValues::input(Rank rank, std::int64_t chunk) const {
  return first_leaf_[rank] + static_cast<Symbol>(chunk);
}

SymbolicValues::Leaf SymbolicValues::leaf(Symbol s) const {
  const auto owner = std::ranges::upper_bound(first_leaf_, s) - 1;
  return {static_cast<Rank>(owner - first_leaf_.begin()), std::int64_t{s} - *owner};
}

std::span<const Symbol> SymbolicValues::operands(Symbol s) const {
  const std::size_t i = s - first_sum_;
  return {operands_.data() + begin_[i], operands_.data() + begin_[i + 1]};
}

std::uint32_t SymbolicValues::terms(Symbol s) const {
  if (s == nothing) return 0;
  return is_input(s) ? 1 : terms_[s - first_sum_];
}

bool SymbolicValues::equal(Symbol s, std::span<const Symbol> other) const {
  return std::ranges::equal(operands(s), other);
}

void SymbolicValues::grow() {
  slots_.assign(slots_.size() * 2, nothing);
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Symbol s = first_sum_ + static_cast<Symbol>(i);
    std::size_t at = hash(operands(s)) & (slots_.size() - 1);
    while (slots_[at] != nothing) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = s;
  }
}

Symbol SymbolicValues::sum(std::span<const Symbol* const> sources) {
  sorted_.clear();
  std::uint64_t terms_here = 0;
  for (const Symbol* source : sources) {
    if (*source == nothing) return nothing;
    sorted_.push_back(*source);
    terms_here += terms(*source);
  }
  if (sorted_.size() == 1) return sorted_[0];
  if (sorted_[0] > sorted_[1]) std::swap(sorted_[0], sorted_[1]);
  std::size_t at = hash(sorted_) & (slots_.size() - 1);
  for (; slots_[at] != nothing; at = (at + 1) & (slots_.size() - 1))
    if (equal(slots_[at], sorted_)) return slots_[at];
  const Symbol made = first_sum_ + static_cast<Symbol>(terms_.size());
  slots_[at] = made;
  operands_.insert(operands_.end(), sorted_.begin(), sorted_.end());
  begin_.push_back(static_cast<std::uint32_t>(operands_.size()));
  terms_.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(terms_here, most_terms)));
  if (terms_.size() * 2 > slots_.size()) grow();
  return made;
}

std::vector<SymbolicValues::Leaf> SymbolicValues::expand(Symbol s, std::size_t most) const {
  std::vector<Leaf> found;
  std::vector<Symbol> open{s};
  while (!open.empty() && found.size() < most) {
    const Symbol at = open.back();
    open.pop_back();
    if (at == nothing) continue;
    if (is_input(at))
      found.push_back(leaf(at));
    else
      open.insert(open.end(), operands(at).begin(), operands(at).end());
  }
  std::ranges::sort(found);
  return found;
}

std::vector<SymbolicValues::Leaf> SymbolicValues::distinct(Symbol s, WorkBudget& work) const {
  seen_.resize(count());
  ++searches_;
  std::vector<Leaf> found;
  std::vector<Symbol> open{s};
  while (!open.empty()) {
    const Symbol at = open.back();
    open.pop_back();
    if (at == nothing) continue;
    if (is_input(at)) {
      found.push_back(leaf(at));
      continue;
    }
    work.spend(WorkBudget::term * static_cast<std::int64_t>(operands(at).size()));
    for (const Symbol operand : operands(at)) {
      if (seen_[operand] == searches_) continue;
      seen_[operand] = searches_;
      open.push_back(operand);
    }
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace trellis::schedule
