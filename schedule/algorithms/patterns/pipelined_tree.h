// A binary tree over ranks with pipelined segments: sums move up, results move down. Ranks are numbered in order (left
// subtree, rank, right subtree), so odd numbers are leaves and even numbers are inner nodes.
#pragma once
#include <bit>

#include "schedule/builder/builder.h"

namespace trellis::schedule {

struct PipelinedTree {
  Rank ranks = 1;
  Rank size = 1;           // ranks in the tree: all, or all but one, which stands above the root
  Rank base = 0;           // the first rank; ranks are counted from it, wrapping around
  Rank shift = 0;          // number of the first rank minus one; numbers wrap around too
  std::int64_t first = 0;  // first chunk
  std::int32_t segments = 1;

  // Number 1 to size; 0 is the rank above the root, if any.
  Rank number(Rank r) const {
    const Rank place = (r - base + ranks) % ranks;
    return place == size ? 0 : (place + shift) % size + 1;
  }
  Rank rank(Rank x) const {
    if (x == 0) return size < ranks ? (base + size) % ranks : -1;
    return (base + (x - 1 - shift + size) % size) % ranks;
  }

  // x lies midway between x - lowest bit and x + lowest bit; one of the two is its parent. If the parent's number
  // exceeds `size`, that parent's parent replaces it, which is always x - lowest bit.
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

  // Depth of the transfer between a rank and its parent. 0 is at the top; -1: no parent.
  int depth(Rank r) const {
    Rank x = number(r);
    if (x == 0) return -1;
    int depth = size < ranks ? 0 : -1;
    for (; x != top(); x = above(x)) ++depth;
    return depth;
  }
  int depths() const { return std::bit_width(static_cast<std::uint32_t>(size)) - (size < ranks ? 0 : 1); }

  // The segment to move in a wave by a link that starts `delay` waves after the first; negative if none.
  std::int64_t chunk(int wave, int delay) const {
    return wave >= delay && wave - delay < segments ? first + wave - delay : -1;
  }
};

// Broadcast, reduce or all_reduce over several trees at once; tree i uses channel i.
void run_trees(Collective, Builder&, const std::vector<PipelinedTree>&);

}  // namespace trellis::schedule
