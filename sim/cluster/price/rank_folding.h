// Finds ranks that neither the machine nor the schedule can tell apart, so that one of them is simulated for
// all.
#pragma once

#include <optional>
#include <vector>

#include "schedule/symmetry.h"
#include "sim/cluster/machine/machine.h"

namespace trellis::sim {

// The renamings that both the schedule and the machine allow.
schedule::Symmetry shared_symmetry(const schedule::Symmetry&, const std::vector<RowSymmetry>&);
// The symmetry of the machine's ranks by which one of a class stands for the others, for a schedule among all ranks.
// None where a defect tells ranks apart.
std::optional<schedule::Symmetry> folded_symmetry(const schedule::Symmetry&, const Machine&);
// Groups of equal size that begin the same kind of schedule at the same time. No rank is in two of the groups.
struct ConcurrentGroups {
  const schedule::Symmetry* schedule = nullptr;
  std::vector<std::vector<Rank>> groups = {};
};
// Likewise for all of these groups at once: the renamings map each group to another one of its kind, or to itself as
// its schedule allows. None if a group's ranks do not lie in rows of equal distances.
std::optional<schedule::Symmetry> folded_symmetry(const Machine&, const std::vector<ConcurrentGroups>&);

// Maps ranks and resources to the representatives that are simulated in their place.
class RankFolding {
 public:
  RankFolding(const Machine&, schedule::Symmetry);

  bool folds() const { return symmetry_.classes() < symmetry_.ranks(); }
  const schedule::Symmetry& symmetry() const { return symmetry_; }
  Rank representative(Rank r) const { return folds() ? symmetry_.representative(r) : r; }
  std::vector<Rank> representatives() const { return symmetry_.representatives(); }

  ResourceId representative(ResourceId r) const {
    return folds() ? machine_.at(r, symmetry_.representative(machine_.owner(r))) : r;
  }
  // How many transfers use the resource for each one that is simulated: those of the ranks of a class that share it.
  std::uint32_t sharers(ResourceId) const;

 private:
  const Machine& machine_;
  schedule::Symmetry symmetry_;
};

}  // namespace trellis::sim
