#include "schedule/builder/rank_permutation.h"

#include <utility>

namespace trellis::schedule {

RankPermutation::RankPermutation(std::vector<Dim> dims) : dims_(std::move(dims)) {}

RankPermutation::RankPermutation(std::vector<Rank> numbering)
    : outer_(std::move(numbering)), inner_(outer_.size()), run_(outer_.size(), 1) {
  for (std::size_t i = outer_.size(); i-- > 0;) {
    inner_[static_cast<std::size_t>(outer_[i])] = static_cast<Rank>(i);
    if (i + 1 < outer_.size() && outer_[i + 1] == outer_[i] + 1) run_[i] = run_[i + 1] + 1;
  }
}

Rank RankPermutation::outer(Rank inner) const {
  if (dims_.empty()) return outer_[static_cast<std::size_t>(inner)];
  Rank outer = 0;
  for (const Dim& d : dims_) {
    outer += inner % d.size * d.stride;
    inner /= d.size;
  }
  return outer;
}

Rank RankPermutation::inner(Rank outer) const {
  if (outer < 0) return -1;
  if (dims_.empty()) return inner_[static_cast<std::size_t>(outer)];
  Rank inner = 0, place = 1;
  for (const Dim& d : dims_) {
    inner += outer / d.stride % d.size * place;
    place *= d.size;
  }
  return inner;
}

Rank RankPermutation::run(Rank inner) const {
  if (dims_.empty()) return run_[static_cast<std::size_t>(inner)];
  Rank length = 1;
  for (const Dim& d : dims_) {
    if (d.size == 1) continue;
    if (d.stride != length) break;
    length *= d.size;
  }
  return length - inner % length;
}

}  // namespace trellis::schedule
