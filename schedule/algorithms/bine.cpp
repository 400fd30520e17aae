// Bine trees (De Sensi et al., SC 2025): binomial trees over the ring of rank numbers in which the distances are
// negabinary, so that partners are nearer. Trees for what has a root; the swinging butterfly for the rest, where blocks
// are taken by position, so that each step is one message, and one more step brings each block to its rank.
#include <fmt/format.h>

#include <bit>
#include <limits>

#include "schedule/algorithm.h"
#include "schedule/butterfly.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// The tree, by places: how far ahead of the root a rank is. Edges have levels: two places are joined in level k when
// their numbers in base -2 differ in the lowest k + 1 digits and in these only. A subtree is a range of places round
// the ring, which level k extends by 2^k places to the side where it was not extended the level before.
struct Tree {
  Rank ranks = 1;
  Rank root = 0;

  int levels() const { return std::bit_width(static_cast<std::uint32_t>(ranks)) - 1; }
  Rank rank(Rank place) const { return static_cast<Rank>((std::int64_t{place} + root) % ranks); }
  Rank place(Rank r) const { return (r - root + ranks) % ranks; }

  static constexpr std::uint32_t odd_digits = 0xAAAAAAAA;
  static std::uint32_t digits(Rank place) { return (static_cast<std::uint32_t>(place) + odd_digits) ^ odd_digits; }

  Rank partner(Rank place, int level) const {
    const std::uint32_t flipped = digits(place) ^ ((std::uint32_t{2} << level) - 1);
    return static_cast<Rank>(((flipped ^ odd_digits) - odd_digits) & static_cast<std::uint32_t>(ranks - 1));
  }
  // The level in which a place meets its parent: its lowest digits are alike up to there. The root has none.
  int level(Rank place) const {
    if (place == 0) return levels();
    const std::uint32_t d = digits(place) & static_cast<std::uint32_t>(ranks - 1);
    return std::min(levels(), d % 2 == 0 ? std::countr_zero(d) : std::countr_one(d)) - 1;
  }
  Rank parent(Rank place) const { return partner(place, level(place)); }
  // The first of the 2^level places below a place that meets its parent in this level.
  Rank range(Rank place, int level) const {
    const std::uint32_t side = (std::uint32_t{1} << level) - 1;
    const Rank back = static_cast<Rank>(side & (place % 2 == 0 ? odd_digits : ~odd_digits));
    return (place - back + ranks) % ranks;
  }
};

// One level: every place that meets its parent in it sends to it (up), or is sent to by it.
template <class Move>
void level_round(Builder& b, const Tree& tree, int level, bool up, Move move) {
  const auto child = [&](Rank place) { return tree.level(place) == level && place != 0; };
  const auto sender = [&](Rank me) -> Rank {
    const Rank place = tree.place(me), other = tree.partner(place, level);
    return child(up ? other : place) ? tree.rank(other) : -1;
  };
  for (Rank r : b.senders(sender)) {
    const Rank place = tree.place(r), other = tree.partner(place, level);
    if (child(up ? place : other)) move(r, tree.rank(other), up ? place : other);
  }
}

// Whole buffers, a segment at a time: down from the root, far partners first, or up to it.
void pass_whole(Builder& b, const Tree& tree, std::int32_t first, std::int32_t segments, bool up) {
  for (int i = 0; i < tree.levels(); ++i)
    for (std::int32_t s = first; s < first + segments; ++s)
      level_round(b, tree, up ? i : tree.levels() - 1 - i, up, [&](Rank from, Rank to, Rank) {
        if (up)
          b.reduce(data(from, s), data(to, s));
        else
          b.copy(data(from, s), data(to, s));
      });
}

// Blocks of whole subtrees, which may be two runs where the ring of ranks is cut.
void pass_blocks(Builder& b, const Tree& tree, bool up) {
  for (int i = 0; i < tree.levels(); ++i) {
    const int level = up ? i : tree.levels() - 1 - i;
    level_round(b, tree, level, up, [&](Rank from, Rank to, Rank child) {
      const Rank first = tree.rank(tree.range(child, level)), count = Rank{1} << level;
      const Rank before_end = std::min(count, tree.ranks - first);
      b.copy(data(from, first, before_end), data(to, first, before_end));
      if (before_end < count) b.copy(data(from, 0, count - before_end), data(to, 0, count - before_end));
    });
  }
}

// The butterfly leaves the sum of the block at a rank's position with that rank; this brings it to the block's rank.
void send_home(Builder& b, const Butterfly& butterfly) {
  for (Rank r : b.senders([&](Rank me) { return butterfly.rank_at(me); })) {
    const Rank home = butterfly.position(r);
    if (home != r) b.copy(data(r, home), data(home, home));
  }
}

void send_to_position(Builder& b, const Butterfly& butterfly) {
  for (Rank r : b.senders([&](Rank me) { return butterfly.position(me); })) {
    const Rank holder = butterfly.rank_at(r);
    if (holder != r) b.copy(data(r, r), data(holder, r));
  }
}

void build_lane(const Request& request, Builder& b, std::int32_t lane) {
  const Tree tree{request.ranks(), request.root};
  const Butterfly butterfly({request.ranks()}, 0, lane % 2 == 1);
  const std::int32_t segments = request.segments, first = lane * segments;
  switch (request.collective) {
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

std::string refuses(const Request& r) {
  if ((r.ranks() & (r.ranks() - 1)) != 0) return fmt::format("{} ranks: expected a power of two", r.ranks());
  if (by_block(r.collective) && r.channels * r.segments > 1)
    return fmt::format("{} channels of {} segments: expected 1 of 1, so that blocks of several ranks are one message",
                       r.channels, r.segments);
  if (const std::int64_t chunks = std::int64_t{r.channels} * r.segments * r.ranks();
      chunks > std::numeric_limits<std::int32_t>::max())
    return fmt::format("{} segments in {} channels for {} ranks make {} chunks: expected at most {}", r.segments,
                       r.channels, r.ranks(), chunks, std::numeric_limits<std::int32_t>::max());
  return "";
}

std::int32_t pieces(const Request& r) { return r.channels * r.segments * (r.collective == all_reduce ? r.ranks() : 1); }

void build(const Request& request, Builder& b) {
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    Builder on = b.on_channel(channel);
    build_lane(request, on, channel);
  }
}

// With one message a step wherever a rank's blocks lie, shifting by an even number changes nothing; but the step that
// brings blocks home does not shift along.
Symmetry symmetry(const Request& r) {
  if (r.collective != all_reduce || r.ranks() == 1) return {{{Axis::Kind::distinct, r.ranks()}}};
  return {{{Axis::Kind::distinct, 2}, {Axis::Kind::rotate, r.ranks() / 2}}};
}

const Registered registered{{
    .name = "bine",
    .summary = "binomial trees and butterflies with negabinary distances; few steps to nearer partners",
    .constraint = "powers of two",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter},
    .refuses = refuses,
    .pieces = pieces,
    .build = build,
    .symmetry = symmetry,
}};

}  // namespace
}  // namespace trellis::schedule
