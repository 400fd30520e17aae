// The Swing butterfly: in step j of a dimension, ranks at even places meet ranks (1-(-2)^(j+1))/3 = 1, -1, 3, -5, ...
// ahead, so that partners lie on both sides and closer than powers of two. Steps alternate between dimensions. In a
// reduce-scatter, a rank hands over what its partner and the partner's later partners are responsible for.
#pragma once
#include "schedule/builder/builder.h"
#include "schedule/builder/hazard_tracker.h"

namespace trellis::schedule {

class SwingButterfly {
 public:
  struct Step {
    std::size_t axis = 0;
    int turn = 0;  // index among the steps of this dimension
  };
  // Starts with dimension `first_axis`. If mirrored, all distances are negated. Each size is 1 or even.
  SwingButterfly(const std::vector<Rank>& dims, std::size_t first_axis, bool mirrored);

  Rank ranks() const { return ranks_; }
  int steps() const { return static_cast<int>(steps_.size()); }
  Step step(int t) const { return steps_[t]; }
  Rank partner(Rank, int step) const;

  // For powers of two, the blocks a rank is responsible for halve in every step. Positions number the ranks so that
  // these blocks are one run.
  bool halves() const;
  Rank position(Rank) const;
  Rank rank_at(Rank position) const;
  HazardTracker::Run answers_for(Rank, int step) const;  // positions, after this step

 private:
  friend class SwingBlocks;
  struct Dimension {
    Rank size = 1;
    Rank stride = 1;
    int turns = 0;

    Rank distance(int turn) const;
    Rank met(Rank place, int turn) const;  // partner of the rank at this place in a single ring
  };
  Rank place(Rank, std::size_t axis) const;
  Rank moved(Rank, std::size_t axis, Rank place) const;

  std::vector<Dimension> dimensions_;
  std::vector<Step> steps_;
  Rank ranks_ = 1;
  bool mirrored_ = false;
};

// Which blocks move in each step, one by one, for any even sizes. If sizes are no powers of two, some ranks could be
// reached twice. Then a block takes the path on which its rank, spreading the block in reverse, arrives first.
class SwingBlocks {
 public:
  explicit SwingBlocks(const SwingButterfly&);
  std::int64_t blocks(int step) const;
  Rank block(Rank from, int step, std::int64_t k) const;  // in the same order for all ranks

 private:
  const SwingButterfly* butterfly_;
  std::vector<std::vector<Rank>> offsets_;  // per dimension: offsets from a rank at an even place, in order of arrival
  std::vector<std::vector<Rank>> known_;    // per step and dimension: how many arrived before
  std::vector<Rank> known_after_;           // per step: how many have arrived after it in its dimension
};

// Sum or gather chunks that are numbered by position from `first` on; each further segment has as many chunks after
// those.
void scatter_sums(Builder&, const SwingButterfly&, std::int64_t first,
                  std::int32_t segments);  // each rank gets its own sum
void gather_positions(Builder&, const SwingButterfly&, std::int64_t first,
                      std::int32_t segments);  // every rank gets all

}  // namespace trellis::schedule
