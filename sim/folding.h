// How far a machine and a schedule look the same from several ranks at once, so that one stands for all of them.
#pragma once

#include <optional>
#include <vector>

#include "schedule/symmetry.h"
#include "sim/machine.h"

namespace trellis::sim {

// The renamings that both allow: those of the schedule's that are also the machine's.
schedule::Symmetry shared_symmetry(const schedule::Symmetry&, const std::vector<Alike>&);
// By these one rank of a class stands for the others. None: `members` are only some of the ranks, or a defect tells
// them apart.
std::optional<schedule::Symmetry> folded_symmetry(const schedule::Symmetry&, const Machine&,
                                                  const std::vector<Rank>& members);

// A machine of ranks that stand for others: names and weights in it.
class Folding {
 public:
  Folding(const Machine&, schedule::Symmetry);

  bool folds() const { return symmetry_.classes() < symmetry_.ranks(); }
  const schedule::Symmetry& symmetry() const { return symmetry_; }
  Rank representative(Rank r) const { return folds() ? symmetry_.representative(r) : r; }
  std::vector<Rank> representatives() const { return symmetry_.representatives(); }

  ResourceId representative(ResourceId r) const {
    return folds() ? machine_.at(r, symmetry_.representative(machine_.owner(r))) : r;
  }
  // How many like transfers share a resource where one is seen to: those that go by other names for the same place.
  std::uint32_t sharers(ResourceId) const;

 private:
  const Machine& machine_;
  schedule::Symmetry symmetry_;
};

}  // namespace trellis::sim
