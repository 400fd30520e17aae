// Other numbers for the ranks of a machine, and for their blocks: an algorithm's number i is the rank outer(i).
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule {

class RankPermutation {
 public:
  struct Dim {
    Rank size = 1, stride = 1;
  };
  explicit RankPermutation(std::vector<Dim> dims);        // numbers count through these, innermost first
  explicit RankPermutation(std::vector<Rank> numbering);  // any order: each rank once

  Rank outer(Rank inner) const;
  Rank inner(Rank outer) const;  // -1 for a negative one
  Rank run(Rank inner) const;    // how many numbers from this one on stand for consecutive ranks

 private:
  std::vector<Dim> dims_ = {};                            // used for an order of dimensions, which needs no tables
  std::vector<Rank> outer_ = {}, inner_ = {}, run_ = {};  // tables for any other order
};

}  // namespace trellis::schedule
