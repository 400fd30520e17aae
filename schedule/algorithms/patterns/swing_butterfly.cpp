#include "schedule/algorithms/patterns/swing_butterfly.h"

#include <algorithm>
#include <bit>

namespace trellis::schedule {

Rank SwingButterfly::Dimension::distance(int turn) const {
  const std::int64_t power = std::int64_t{1} << (turn + 1);
  return static_cast<Rank>((1 - (turn % 2 == 0 ? -power : power)) / 3 % size);
}

Rank SwingButterfly::Dimension::met(Rank place, int turn) const {
  const Rank by = distance(turn);
  return (place + (place % 2 == 0 ? by : -by) + size) % size;
}

SwingButterfly::SwingButterfly(const std::vector<Rank>& dims, std::size_t first_axis, bool mirrored)
    : mirrored_(mirrored) {
  int most = 0;
  for (Rank size : dims) {
    const int turns = std::bit_width(static_cast<std::uint32_t>(size - 1));
    dimensions_.push_back({size, ranks_, turns});
    ranks_ *= size;
    most = std::max(most, turns);
  }
  for (int turn = 0; turn < most; ++turn)
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const std::size_t axis = (first_axis + i) % dims.size();
      if (turn < dimensions_[axis].turns) steps_.push_back({axis, turn});
    }
}

// A mirrored butterfly is an ordinary one with places counted backwards.
Rank SwingButterfly::place(Rank r, std::size_t axis) const {
  const Dimension& d = dimensions_[axis];
  const Rank at = r / d.stride % d.size;
  return mirrored_ ? (d.size - at) % d.size : at;
}

Rank SwingButterfly::moved(Rank r, std::size_t axis, Rank place) const {
  const Dimension& d = dimensions_[axis];
  const Rank at = mirrored_ ? (d.size - place) % d.size : place;
  return r + (at - r / d.stride % d.size) * d.stride;
}

Rank SwingButterfly::partner(Rank r, int step) const {
  const auto [axis, turn] = steps_[step];
  return moved(r, axis, dimensions_[axis].met(place(r, axis), turn));
}

bool SwingButterfly::halves() const {
  return std::ranges::all_of(dimensions_, [](const Dimension& d) { return (d.size & (d.size - 1)) == 0; });
}

// From turn j on, an even place reaches the even places at multiples of 2^(j+1), each with its partner of the last
// turn. So turn j decides bit j of half the pair's even place, and the last turn decides which of the two it is.
Rank SwingButterfly::position(Rank r) const {
  Rank position = 0;
  for (const auto [axis, turn] : steps_) {
    const Dimension& d = dimensions_[axis];
    const Rank at = place(r, axis), even = at % 2 == 0 ? at : d.met(at, d.turns - 1);
    position = position << 1 | (turn + 1 == d.turns ? at % 2 : even >> (turn + 1) & 1);
  }
  return position;
}

Rank SwingButterfly::rank_at(Rank position) const {
  Rank r = 0;
  for (std::size_t axis = 0; axis < dimensions_.size(); ++axis) {
    Rank at = 0;
    for (int t = 0; t < steps(); ++t) {
      if (steps_[t].axis != axis) continue;
      const Rank bit = position >> (steps() - 1 - t) & 1;
      if (steps_[t].turn + 1 < dimensions_[axis].turns)
        at |= bit << (steps_[t].turn + 1);
      else if (bit)
        at = dimensions_[axis].met(at, steps_[t].turn);
    }
    r = moved(r, axis, at);
  }
  return r;
}

HazardTracker::Run SwingButterfly::answers_for(Rank r, int step) const {
  const int left = steps() - 1 - step;
  return {position(r) >> left << left, std::int64_t{1} << left};
}

// Simulates how a block spreads from place 0 of each dimension, last steps first, and records the order of arrival.
SwingBlocks::SwingBlocks(const SwingButterfly& butterfly) : butterfly_(&butterfly), known_after_(butterfly.steps()) {
  std::vector<std::vector<bool>> arrived;
  for (const auto& d : butterfly.dimensions_) {
    offsets_.push_back({0});
    arrived.emplace_back(d.size).front() = true;
  }
  known_.resize(butterfly.steps());
  for (int t = butterfly.steps() - 1; t >= 0; --t) {
    for (const auto& known : offsets_) known_[t].push_back(static_cast<Rank>(known.size()));
    const auto [axis, turn] = butterfly.step(t);
    for (Rank i = 0; i < known_[t][axis]; ++i) {
      const Rank next = butterfly.dimensions_[axis].met(offsets_[axis][i], turn);
      if (!arrived[axis][next]) offsets_[axis].push_back(next);
      arrived[axis][next] = true;
    }
    known_after_[t] = static_cast<Rank>(offsets_[axis].size());
  }
}

std::int64_t SwingBlocks::blocks(int step) const {
  std::int64_t count = 1;
  const std::size_t axis = butterfly_->step(step).axis;
  for (std::size_t i = 0; i < known_[step].size(); ++i)
    count *= i == axis ? known_after_[step] - known_[step][i] : known_[step][i];
  return count;
}

Rank SwingBlocks::block(Rank from, int step, std::int64_t k) const {
  const std::size_t stepped = butterfly_->step(step).axis;
  Rank block = from;
  for (std::size_t axis = 0; axis < offsets_.size(); ++axis) {
    const Rank start = axis == stepped ? known_[step][axis] : 0;
    const Rank count = (axis == stepped ? known_after_[step] : known_[step][axis]) - start;
    const Rank offset = offsets_[axis][start + k % count];
    k /= count;
    // The block of an even place reaches `offset` ahead of it; that of an odd place reaches as far behind.
    const Rank size = butterfly_->dimensions_[axis].size, at = butterfly_->place(from, axis);
    const bool even_owner = at % 2 == offset % 2;
    block = butterfly_->moved(block, axis, (at + (even_owner ? size - offset : offset)) % size);
  }
  return block;
}

namespace {

// The round of one step: each rank sends its partner the positions that one of the two is responsible for after the
// step: the partner if `partners`, else the sender.
template <class Move>
void exchange(Builder& b, const SwingButterfly& butterfly, int step, std::int64_t first, bool partners, Move move) {
  const auto partner = [&](Rank r) { return butterfly.partner(r, step); };
  for (Rank r : b.senders(partner)) {
    const HazardTracker::Run run = butterfly.answers_for(partners ? partner(r) : r, step);
    move(data(r, first + run.first, run.count), data(partner(r), first + run.first, run.count));
  }
}

}  // namespace

void scatter_sums(Builder& b, const SwingButterfly& butterfly, std::int64_t first, std::int32_t segments) {
  for (int step = 0; step < butterfly.steps(); ++step)
    for (std::int32_t s = 0; s < segments; ++s)
      exchange(b, butterfly, step, first + std::int64_t{s} * butterfly.ranks(), true,
               [&](const ChunkPlace& from, const ChunkPlace& to) { b.reduce(from, to); });
}

void gather_positions(Builder& b, const SwingButterfly& butterfly, std::int64_t first, std::int32_t segments) {
  for (int step = butterfly.steps() - 1; step >= 0; --step)
    for (std::int32_t s = 0; s < segments; ++s)
      exchange(b, butterfly, step, first + std::int64_t{s} * butterfly.ranks(), false,
               [&](const ChunkPlace& from, const ChunkPlace& to) { b.copy(from, to); });
}

}  // namespace trellis::schedule
