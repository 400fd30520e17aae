// Bine trees (De Sensi et al., SC 2025): binomial trees over a ring with negabinary distances, so that partners are
// closer. Rooted collectives use trees. The others use the swinging butterfly with blocks taken by position, so that
// each step is one message; one extra step moves each block to its rank. The ring follows rank numbers, or there is one
// ring per dimension of a torus.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "schedule/algorithms/patterns/swing_butterfly.h"
#include "schedule/algorithms/patterns/torus_lanes.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// The tree along one ring, in terms of places: a place is the distance ahead of the root. Level k joins two places
// whose base -2 numbers differ in all of the lowest k + 1 digits and in no other. A subtree is a range of places around
// the ring; level k extends it by 2^k places on the side opposite to the level before.
struct Ring {
  Rank size = 1;
  Rank stride = 1;  // between neighbouring ranks of the ring
  Rank root = 0;
  bool mirrored = false;  // places are counted backwards

  int levels() const { return std::bit_width(static_cast<std::uint32_t>(size)) - 1; }
  Rank coordinate(Rank r) const { return r / stride % size; }
  Rank coordinate_at(Rank place) const { return (root + (mirrored ? size - place : place)) % size; }
  Rank place(Rank r) const { return (size + (mirrored ? root - coordinate(r) : coordinate(r) - root)) % size; }

  static constexpr std::uint32_t odd_digits = 0xAAAAAAAA;
  static std::uint32_t digits(Rank place) { return (static_cast<std::uint32_t>(place) + odd_digits) ^ odd_digits; }

  Rank partner(Rank r, int level) const {
    const std::uint32_t flipped = digits(place(r)) ^ ((std::uint32_t{2} << level) - 1);
    const auto other = static_cast<Rank>(((flipped ^ odd_digits) - odd_digits) & static_cast<std::uint32_t>(size - 1));
    return r + (coordinate_at(other) - coordinate(r)) * stride;
  }
  // The level in which a place meets its parent: its lowest digits are equal up to that level. The root has none.
  int level(Rank place) const {
    if (place == 0) return levels();
    const std::uint32_t d = digits(place) & static_cast<std::uint32_t>(size - 1);
    return (d % 2 == 0 ? std::countr_zero(d) : std::countr_one(d)) - 1;
  }
  // The first of the 2^level places in the subtree of a place that meets its parent in this level.
  Rank range(Rank place, int level) const {
    const std::uint32_t side = (std::uint32_t{1} << level) - 1;
    const Rank back = static_cast<Rank>(side & (place % 2 == 0 ? odd_digits : ~odd_digits));
    return (place - back + size) % size;
  }
};

// The steps towards the root; each is one level of one ring. Either near partners come first, and the rings take turns;
// or, with ring_by_ring, all steps of the innermost ring come first, then those of the next one, and so on, so that a
// rank's subtree is a range along one ring times all earlier rings.
class Tree {
 public:
  Tree(const std::vector<Rank>& dims, Rank root, std::size_t first_axis, bool mirrored, bool ring_by_ring) {
    Rank stride = 1;
    for (Rank size : dims) {
      rings_.push_back({size, stride, root / stride % size, mirrored});
      stride *= size;
    }
    const SwingButterfly butterfly(dims, first_axis, mirrored);
    for (int t = 0; t < butterfly.steps(); ++t) steps_.push_back(butterfly.step(t));
    if (ring_by_ring) std::ranges::stable_sort(steps_, {}, &SwingButterfly::Step::axis);
  }

  int steps() const { return static_cast<int>(steps_.size()); }
  const Ring& ring(int step) const { return rings_[steps_[step].axis]; }
  int level(int step) const { return steps_[step].turn; }
  Rank partner(Rank r, int step) const { return ring(step).partner(r, level(step)); }
  // A rank is done once it has met its parent along any ring.
  bool meets_parent(Rank r, int step) const {
    const auto meets = [&](int t) { return ring(t).level(ring(t).place(r)) == level(t); };
    for (int t = 0; t < step; ++t)
      if (meets(t)) return false;
    return meets(step);
  }

 private:
  std::vector<Ring> rings_;
  std::vector<SwingButterfly::Step> steps_;
};

// One step: each rank that meets its parent in this step sends to it (up) or receives from it (down).
template <class Move>
void tree_round(Builder& b, const Tree& tree, int step, bool up, Move move) {
  const auto sender = [&](Rank me) {
    const Rank other = tree.partner(me, step);
    return tree.meets_parent(up ? other : me, step) ? other : -1;
  };
  for (Rank r : b.senders(sender)) {
    const Rank other = tree.partner(r, step);
    if (tree.meets_parent(up ? r : other, step)) move(r, other);
  }
}

// Passes whole buffers, one segment at a time: down from the root with far partners first, or up to the root.
void pass_whole(Builder& b, const Tree& tree, std::int32_t first, std::int32_t segments, bool up) {
  for (int i = 0; i < tree.steps(); ++i)
    for (std::int32_t s = first; s < first + segments; ++s)
      tree_round(b, tree, up ? i : tree.steps() - 1 - i, up, [&](Rank from, Rank to) {
        if (up)
          b.reduce(data(from, s), data(to, s));
        else
          b.copy(data(from, s), data(to, s));
      });
}

// Passes the blocks of whole subtrees. A subtree that wraps around the end of the ring is two runs of blocks.
void pass_blocks(Builder& b, const Tree& tree, bool up) {
  for (int i = 0; i < tree.steps(); ++i) {
    const int step = up ? i : tree.steps() - 1 - i, level = tree.level(step);
    const Ring& ring = tree.ring(step);
    tree_round(b, tree, step, up, [&](Rank from, Rank to) {
      const Rank child = up ? from : to, before = child - child % (ring.stride * ring.size);
      const Rank first = ring.coordinate_at(ring.range(ring.place(child), level)), count = Rank{1} << level;
      const auto pass = [&](Rank start, Rank end) {
        const Rank block = before + start * ring.stride, blocks = (end - start) * ring.stride;
        if (blocks > 0) b.copy(data(from, block, blocks), data(to, block, blocks));
      };
      pass(first, std::min(first + count, ring.size));
      pass(0, first + count - ring.size);
    });
  }
}

// The butterfly leaves the sum of the block at a rank's position on that rank. This moves it to the block's rank.
void send_home(Builder& b, const SwingButterfly& butterfly) {
  for (Rank r : b.senders([&](Rank me) { return butterfly.rank_at(me); })) {
    const Rank home = butterfly.position(r);
    if (home != r) b.copy(data(r, home), data(home, home));
  }
}

void send_to_position(Builder& b, const SwingButterfly& butterfly) {
  for (Rank r : b.senders([&](Rank me) { return butterfly.position(me); })) {
    const Rank holder = butterfly.rank_at(r);
    if (holder != r) b.copy(data(r, r), data(holder, r));
  }
}

void build_lane(const Request& request, Builder b, const std::vector<Rank>& dims, const TorusLane& lane) {
  const Tree tree(dims, request.operation.root, lane.first_axis, lane.backward, by_block(request.operation.collective));
  const SwingButterfly butterfly(dims, lane.first_axis, lane.backward);
  const std::int32_t segments = request.segments, first = lane.index * segments;
  switch (request.operation.collective) {
    case broadcast:
      return pass_whole(b, tree, first, segments, false);
    case reduce:
      return pass_whole(b, tree, first, segments, true);
    case gather:
      return pass_blocks(b, tree, true);
    case scatter:
      return pass_blocks(b, tree, false);
    case reduce_scatter:
      return scatter_sums(b, butterfly, 0, 1), send_home(b, butterfly);
    case all_gather:
      return send_to_position(b, butterfly), gather_positions(b, butterfly, 0, 1);
    default:
      scatter_sums(b, butterfly, std::int64_t{first} * b.ranks(), segments);
      gather_positions(b, butterfly, std::int64_t{first} * b.ranks(), segments);
  }
}

std::string refuses_lanes(const Request& r) {
  if (!by_block(r.operation.collective) || r.channels * r.segments == 1) return "";
  return fmt::format("{} channels of {} segments: expected 1 of 1, so that blocks of several ranks are one message",
                     r.channels, r.segments);
}

std::string refuses(const Request& r) {
  if ((r.ranks() & (r.ranks() - 1)) != 0) return fmt::format("{} ranks: expected a power of two", r.ranks());
  return refuses_lanes(r);
}

std::int64_t pieces(const Request& r) { return r.shares() * (r.operation.collective == all_reduce ? r.ranks() : 1); }

void build(const Request& request, Builder& b) {
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    // All trees run in the same direction, so that each rank has fewer partners.
    const bool backward = request.operation.collective == all_reduce && channel % 2 == 1;
    build_lane(request, b.on_channel(channel), {request.ranks()}, {.backward = backward, .index = channel});
  }
}

// An all_reduce sends one message per step wherever its chunks lie, so shifts by an even number of ranks are symmetric.
// The step with which other collectives move blocks to their ranks is not.
Symmetry symmetry_along(const std::vector<Rank>& dims, const Request& r) {
  if (r.operation.collective != all_reduce) return {{{SymmetryAxis::Kind::distinct, r.ranks()}}};
  return even_shifts(dims);
}

Symmetry symmetry_torus(const Request& r) { return symmetry_along(r.dims, r); }
Symmetry symmetry(const Request& r) { return symmetry_along({r.ranks()}, r); }

std::string refuses_torus(const Request& r) {
  for (const std::string& why : {refuses_other_sides(r.dims), refuses_torus_lanes(r), refuses_lanes(r)})
    if (!why.empty()) return why;
  return "";
}

// One lane if blocks belong to ranks. More lanes would cut every block, and messages would no longer be runs.
std::vector<TorusLane> lanes(const Request& r) {
  return by_block(r.operation.collective) ? std::vector<TorusLane>(1) : torus_lanes(r);
}

std::int64_t pieces_torus(const Request& r) {
  return std::ssize(lanes(r)) * r.segments * (r.operation.collective == all_reduce ? r.ranks() : 1);
}

void build_torus(const Request& request, Builder& b) {
  for (const TorusLane& lane : lanes(request))
    build_lane(request, b.on_channel(lane.index), linked(request.dims), lane);
}

const RegisteredAlgorithm registered{{
    .name = "bine",
    .summary = "binomial trees and butterflies with negabinary distances; few steps to nearer partners",
    .constraint = "powers of two",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter},
    .refuses = refuses,
    .pieces = pieces,
    .build = build,
    .dims = UseOfDims::none,
    .symmetry = symmetry,
    .usual_shape = UsualShape::machine,
}};

const RegisteredAlgorithm registered_torus{{
    .name = "bine_torus",
    .summary = "bine with distances along the dimensions of a torus; whole buffers on all links at once",
    .constraint = "dimensions that are powers of two",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter},
    .refuses = refuses_torus,
    .pieces = pieces_torus,
    .build = build_torus,
    .symmetry = symmetry_torus,
}};

}  // namespace
}  // namespace trellis::schedule
