// A butterfly that swings: in step j of a dimension, ranks at even places meet those (1-(-2)^(j+1))/3 = 1, -1, 3, -5,
// ... ahead, so that partners lie on both sides and nearer than powers of two. Steps take the dimensions in turn. When
// sums are scattered, a rank hands over in each step what its partner and the partner's later partners answer for.
#pragma once
#include "schedule/builder.h"

namespace trellis::schedule {

class Butterfly {
 public:
  struct Step {
    std::size_t axis = 0;
    int turn = 0;  // the how-manieth of this dimension
  };
  // Steps begin with dimension `first_axis`; mirrored, all distances have the other sign. Each size is 1 or even.
  Butterfly(const std::vector<Rank>& dims, std::size_t first_axis, bool mirrored);

  Rank ranks() const { return ranks_; }
  int steps() const { return static_cast<int>(steps_.size()); }
  Step step(int t) const { return steps_[t]; }
  Rank partner(Rank, int step) const;

  // With powers of two, what a rank answers for halves in every step. Positions number the ranks so that it is a run.
  bool halves() const;
  Rank position(Rank) const;
  Rank rank_at(Rank position) const;
  Hazards::Run answers_for(Rank, int step) const;  // the positions, once this step is done

 private:
  friend class Handover;
  struct Dimension {
    Rank size = 1;
    Rank stride = 1;
    int turns = 0;

    Rank distance(int turn) const;
    Rank met(Rank place, int turn) const;  // who meets the rank at this place, were the ring alone
  };
  Rank place(Rank, std::size_t axis) const;
  Rank moved(Rank, std::size_t axis, Rank place) const;

  std::vector<Dimension> dimensions_;
  std::vector<Step> steps_;
  Rank ranks_ = 1;
  bool mirrored_ = false;
};

// Which blocks go over in each step, one by one, for any even sizes. Where they are no powers of two, partners could
// reach some ranks twice: the block of a rank goes the way on which that rank, spreading it backwards, is first to
// arrive.
class Handover {
 public:
  explicit Handover(const Butterfly&);
  std::int64_t blocks(int step) const;
  Rank block(Rank from, int step, std::int64_t k) const;  // in an order that is the same for all ranks

 private:
  const Butterfly* butterfly_;
  std::vector<std::vector<Rank>> offsets_;  // of each dimension, from a rank at an even place, in the order of arrival
  std::vector<std::vector<Rank>> known_;    // of each step, in each dimension: how many have arrived before
  std::vector<Rank> known_after_;           // of each step, in its dimension
};

// For chunks first, first + 1, ... by position, and as many again for each further segment.
void scatter_sums(Builder&, const Butterfly&, std::int64_t first, std::int32_t segments);  // each rank's own is summed
void gather_positions(Builder&, const Butterfly&, std::int64_t first, std::int32_t segments);  // everybody gets all

}  // namespace trellis::schedule
