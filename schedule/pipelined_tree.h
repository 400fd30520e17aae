// A binary tree over ranks through which segments follow each other: up to be summed, down to be known. Ranks are
// numbered in order (left subtree, rank, right subtree), so that odd numbers are leaves and even ones are not.
#pragma once
#include <bit>

#include "schedule/builder.h"

namespace trellis::schedule {

struct PipelinedTree {
  Rank ranks = 1;
  Rank size = 1;           // ranks of the tree: all, or all but one, which stands above the tree's root
  Rank base = 0;           // the rank that is first, from where on ranks are counted round
  Rank shift = 0;          // number of the first rank, less one; the numbers go round as well
  std::int64_t first = 0;  // chunk
  std::int32_t segments = 1;

  // Numbers 1 to size; 0 is whoever stands above the root.
  Rank number(Rank r) const {
    const Rank place = (r - base + ranks) % ranks;
    return place == size ? 0 : (place + shift) % size + 1;
  }
  Rank rank(Rank x) const {
    if (x == 0) return size < ranks ? (base + size) % ranks : -1;
    return (base + (x - 1 - shift + size) % size) % ranks;
  }

  // x stands in the middle between x - lowest bit and x + lowest bit, and one of the two is its parent. Where the tree
  // would be larger than there are ranks, the missing parent's parent takes its place: always the one before x.
  Rank above(Rank x) const {
    const Rank lowest = x & -x;
    return (x & 2 * lowest) == 0 && x + lowest <= size ? x + lowest : x - lowest;
  }
  Rank parent(Rank r) const {
    const Rank x = number(r);
    return x == 0 ? -1 : rank(above(x));
  }
  std::vector<Rank> children(Rank r) const {
    const Rank x = number(r);
    if (x == 0) return {rank(top())};
    std::vector<Rank> found;
    Rank reach = (x & -x) / 2;
    if (reach > 0) found.push_back(rank(x - reach));
    while (reach > 0 && x + reach > size) reach /= 2;
    if (reach > 0) found.push_back(rank(x + reach));
    return found;
  }
  Rank top() const { return static_cast<Rank>(std::bit_floor(static_cast<std::uint32_t>(size))); }

  // Of the transfer between a rank that has a parent and that parent: 0 is the uppermost.
  int depth(Rank r) const {
    int below_top = 0;
    for (Rank x = number(r); x != top(); x = above(x)) ++below_top;
    return size < ranks ? below_top : below_top - 1;
  }
  int depths() const { return std::bit_width(static_cast<std::uint32_t>(size)) - (size < ranks ? 0 : 1); }

  // The segment whose turn it is in a wave, at so many waves after the first; negative when there is none.
  std::int64_t chunk(int wave, int delay) const {
    return wave >= delay && wave - delay < segments ? first + wave - delay : -1;
  }
};

// One wave moves each segment by one link, after `start` waves. A second child's arrive in scratch, so that neither
// child waits for the other, and are added afterwards.
inline void sum_up(Builder& b, const PipelinedTree& tree, int wave, int start = 0) {
  const auto chunk_of = [&](Rank child) { return tree.chunk(wave, start + tree.depths() - 1 - tree.depth(child)); };
  for (Rank r : b.senders([&](Rank me) { return tree.children(me); })) {
    const Rank parent = tree.parent(r);
    const std::int64_t c = parent < 0 ? -1 : chunk_of(r);
    if (c < 0) continue;
    if (r == tree.children(parent).front())
      b.reduce(data(r, c), data(parent, c));
    else
      b.copy(data(r, c), tmp(parent, c, 1, c));
  }
  for (Rank r : b.senders())
    if (const auto children = tree.children(r); children.size() == 2)
      if (const std::int64_t c = chunk_of(children.back()); c >= 0) b.reduce(tmp(r, c, 1, c), data(r, c));
}

inline void pass_down(Builder& b, const PipelinedTree& tree, int wave, int start = 0) {
  for (Rank r : b.senders([&](Rank me) { return tree.parent(me); }))
    for (Rank child : tree.children(r))
      if (const auto c = tree.chunk(wave, start + tree.depth(child)); c >= 0) b.copy(data(r, c), data(child, c));
}

// Broadcast, reduce or all_reduce over several trees at once, tree i on channel i.
inline void run_trees(Collective collective, Builder& b, const std::vector<PipelinedTree>& trees) {
  if (b.ranks() == 1) return;
  const bool up = reduces(collective), down = collective != Collective::reduce;
  const int depths = trees.front().depths(), waves = trees.front().segments + depths - 1 + (up && down ? depths : 0);
  for (int wave = 0; wave < waves; ++wave)
    for (std::size_t i = 0; i < trees.size(); ++i) {
      Builder on = b.on_channel(static_cast<int>(i));
      if (up) sum_up(on, trees[i], wave);
      if (down) pass_down(on, trees[i], wave, up ? depths : 0);
    }
}

}  // namespace trellis::schedule
