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

  // Of the transfer between a rank and its parent: 0 is the uppermost; -1: it has none.
  int depth(Rank r) const {
    Rank x = number(r);
    if (x == 0) return -1;
    int depth = size < ranks ? 0 : -1;
    for (; x != top(); x = above(x)) ++depth;
    return depth;
  }
  int depths() const { return std::bit_width(static_cast<std::uint32_t>(size)) - (size < ranks ? 0 : 1); }

  // The segment whose turn it is in a wave, at so many waves after the first; negative when there is none.
  std::int64_t chunk(int wave, int delay) const {
    return wave >= delay && wave - delay < segments ? first + wave - delay : -1;
  }
};

// Broadcast, reduce or all_reduce over several trees at once, tree i on channel i.
void run_trees(Collective, Builder&, const std::vector<PipelinedTree>&);

}  // namespace trellis::schedule
