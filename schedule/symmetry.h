// Which ranks are alike: a schedule may look the same from every rank of a class, once names are changed accordingly.
#pragma once
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule {

// Ranks as coordinates, innermost axis first. Along an axis the schedule stays the same when all coordinates are
// shifted round (rotate), or all are exclusive-or'ed with one number (flip); or nothing is promised (distinct).
struct Axis {
  enum class Kind : std::uint8_t { distinct, rotate, flip } kind = Kind::distinct;
  Rank size = 1;
  bool operator==(const Axis&) const = default;
};

struct Symmetry {
  std::vector<Axis> axes;

  Rank ranks() const;
  Rank classes() const;                              // how many kinds of rank there are
  Rank representative(Rank) const;                   // the lowest rank that is like this one
  std::vector<Rank> representatives() const;         // one of each class, ascending
  Rank image(Rank from, Rank to, Rank other) const;  // what `other` is called when `from` is called `to`
};

}  // namespace trellis::schedule
