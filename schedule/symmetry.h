// Symmetry classes of ranks: ranks of one class run the same program, up to renaming of ranks.
#pragma once
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule {

// Ranks as coordinates, innermost axis first. The schedule does not change when all coordinates along an axis are
// rotated by one amount (rotate) or XORed with one number (flip). A distinct axis promises no symmetry.
struct SymmetryAxis {
  enum class Kind : std::uint8_t { distinct, rotate, flip } kind = Kind::distinct;
  Rank size = 1;
  bool operator==(const SymmetryAxis&) const = default;
};

struct Symmetry {
  std::vector<SymmetryAxis> axes;

  Rank ranks() const;
  Rank classes() const;                              // number of classes
  Rank representative(Rank) const;                   // the lowest rank of this rank's class
  std::vector<Rank> representatives() const;         // one rank per class, ascending
  Rank image(Rank from, Rank to, Rank other) const;  // the new name of `other` when `from` is renamed `to`
};

}  // namespace trellis::schedule
