// A binomial tree over ranges of ranks. The holder of a range's data sends the farther half to one rank in it, and both
// recurse; or in reverse, towards the root. A range is one run of blocks, so a subtree is one message.
#include <algorithm>
#include <bit>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {
namespace {

using enum Collective;

struct Range {
  Rank first = 0;
  Rank count = 1;
  Rank holder = 0;  // the rank of the range that has its data
  bool has(Rank r) const { return first <= r && r < first + count; }
};

struct Halves {
  // `near` contains the range's holder. The holder of `far` is at the same position in it, so that the pairs of holders
  // of equal halves form a hypercube.
  Range near, far;
};

Halves split(const Range& range) {
  const Rank low = (range.count + 1) / 2;
  Range near{range.first, low, range.holder}, far{range.first + low, range.count - low, 0};
  if (!near.has(range.holder)) std::swap(near.first, far.first), std::swap(near.count, far.count);
  far.holder = far.first + std::min(range.holder - near.first, far.count - 1);
  return {near, far};
}

struct Tree {
  Rank ranks = 1;
  Rank root = 0;

  int depth() const { return std::bit_width(static_cast<std::uint32_t>(ranks - 1)); }
  Range range_of(Rank r, int level) const {
    Range range{0, ranks, root};
    for (; level > 0 && range.count > 1; --level) {
      const auto [near, far] = split(range);
      range = near.has(r) ? near : far;
    }
    return range;
  }
};

// The transfers of one level, between the holder of each range and the holder of its farther half.
template <class Move>
void each_pair(Builder& b, const Tree& tree, int level, bool down, Move move) {
  const auto pair = [&](Rank r) {
    const Range range = tree.range_of(r, level);
    const Range far = range.count > 1 ? split(range).far : range;
    return down ? std::tuple(range.holder, far.holder, far) : std::tuple(far.holder, range.holder, far);
  };
  const auto sender = [&](Rank me) {
    const auto [from, to, range] = pair(me);
    return me == to ? from : -1;
  };
  for (Rank r : b.senders(sender)) {
    const auto [from, to, range] = pair(r);
    if (r == from && from != to) move(from, to, range);
  }
}

void build(const Request& request, Builder& b) {
  const Tree tree{request.ranks(), request.operation.root};
  const bool down = request.operation.collective == broadcast || request.operation.collective == scatter;
  for (std::int32_t i = 0; i < request.shares(); ++i) {
    Builder on = b.on_channel(i / request.segments);
    for (int turn = 0; turn < tree.depth(); ++turn)
      each_pair(on, tree, down ? turn : tree.depth() - 1 - turn, down, [&](Rank from, Rank to, const Range& range) {
        if (request.operation.collective == broadcast)
          on.copy(data(from, i), data(to, i));
        else if (request.operation.collective == reduce)
          on.reduce(data(from, i), data(to, i));
        else
          on.copy(data(from, range.first, range.count), data(to, range.first, range.count));
      });
  }
}

std::string refuses(const Request& r) {
  return by_block(r.operation.collective) ? refuses_shares(r, "as a subtree's blocks are one message") : "";
}

const RegisteredAlgorithm registered{{
    .name = "binomial",
    .summary = "a tree of halves: fewest steps for small messages from or to a root",
    .constraint = "any rank count",
    .serves = {broadcast, reduce, gather, scatter},
    .refuses = refuses,
    .pieces = [](const Request& r) { return r.shares(); },
    .build = build,
    .dims = UseOfDims::none,
    .renown = 2,
}};

}  // namespace
}  // namespace trellis::schedule
