// Bruck's algorithm: distances double from step to step for any rank count, and each step sends one message however
// many blocks it carries. Local copies keep the blocks in scratch, ordered by distance from the rank that holds them.
#include <algorithm>
#include <bit>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// A scratch run that starts at this position. All blocks are equally large, so any run of `count` blocks has its size.
ChunkPlace staged(Rank r, std::int64_t position, std::int64_t count = 1) { return tmp(r, position, count, 0); }

// Calls move(position, block, count) for each run of blocks among rank r's positions first, first + 1, ... Position i
// holds the block of the rank i ahead; block numbers wrap around.
template <class Move>
void each_run(Rank r, Rank ranks, Rank first, Rank count, Move move) {
  const Rank block = (r + first) % ranks, before_end = std::min(count, ranks - block);
  move(first, block, before_end);
  if (before_end < count) move(first + before_end, 0, count - before_end);
}

void gather_all(Builder& b) {
  const Rank n = b.ranks();
  for (Rank r : b.senders()) b.copy(data(r, r), staged(r, 0));
  for (Rank distance = 1; distance < n; distance *= 2) {
    const Rank count = std::min(distance, n - distance);
    for (Rank r : b.senders([&](Rank me) { return (me + distance) % n; }))
      b.copy(staged(r, 0, count), staged((r - distance + n) % n, distance, count));
    for (Rank r : b.senders())
      each_run(r, n, distance, count, [&](Rank position, Rank block, Rank length) {
        b.copy(staged(r, position, length), data(r, block, length));
      });
  }
}

// The reverse of gather_all(): blocks that it distributes are summed here.
void scatter_sums(Builder& b) {
  const Rank n = b.ranks();
  if (n == 1) return;
  const auto farthest = static_cast<Rank>(std::bit_floor(static_cast<std::uint32_t>(n - 1)));
  for (Rank r : b.senders()) {
    const auto fetch = [&](Rank position, Rank block, Rank length) {
      b.copy(data(r, block, length), staged(r, position, length));
    };
    each_run(r, n, farthest, n - farthest, fetch);
    each_run(r, n, 0, farthest, fetch);
  }
  for (Rank distance = farthest; distance > 0; distance /= 2) {
    const Rank count = std::min(distance, n - distance);
    for (Rank r : b.senders([&](Rank me) { return (me - distance + n) % n; }))
      b.reduce(staged(r, distance, count), staged((r + distance) % n, 0, count));
  }
  for (Rank r : b.senders()) b.copy(staged(r, 0), data(r, r));
}

// All-to-all: the block at position i must go i ranks ahead. For each bit of i, one step moves it that many ranks
// ahead, together with the blocks at all other positions that have the bit.
class Journey {
 public:
  explicit Journey(Rank ranks) : ranks_(ranks) {}

  Rank travellers(Rank bit) const { return ranks_ / (2 * bit) * bit + std::max(0, ranks_ % (2 * bit) - bit); }
  ChunkPlace packed(Rank r, Rank bit, Rank turn, Rank count) const { return staged(r, region(bit, 0) + turn, count); }
  ChunkPlace arrived(Rank r, Rank bit, Rank turn, Rank count) const { return staged(r, region(bit, 1) + turn, count); }

  // Where the block at this position lies before the bit's step, and the contiguous ones after it.
  ChunkPlace found(Rank r, Rank position, Rank bit) const {
    const Rank done = position % bit;
    if (done == 0) return in(r, (r + position) % ranks_);
    const Rank last = static_cast<Rank>(std::bit_floor(static_cast<std::uint32_t>(done)));
    return arrived(r, last, position / (2 * last) * last + position % last,
                   std::min(2 * last - done, ranks_ - position));
  }

 private:
  std::int64_t region(Rank bit, int half) const {
    return (2 * std::int64_t{std::countr_zero(static_cast<std::uint32_t>(bit))} + half) * ranks_;
  }
  Rank ranks_;
};

void transpose(Builder& b) {
  const Rank n = b.ranks();
  const Journey journey(n);
  Rank bit = 1;
  for (; bit < n; bit *= 2)
    for (Rank r : b.senders([&](Rank me) { return (me - bit + n) % n; })) {
      Rank turn = 0;
      for (Rank start = bit; start < n; start += 2 * bit)
        for (Rank position = start; position < std::min(n, start + bit);) {
          const ChunkPlace from = journey.found(r, position, bit);
          b.copy(from, journey.packed(r, bit, turn, static_cast<Rank>(from.count)));
          position += static_cast<Rank>(from.count), turn += static_cast<Rank>(from.count);
        }
      const Rank all = journey.travellers(bit);
      b.copy(journey.packed(r, bit, 0, all), journey.arrived((r + bit) % n, bit, 0, all));
    }
  for (Rank r : b.senders()) {
    b.copy(in(r, r), out(r, r));
    for (Rank position = 1; position < n; ++position) {
      ChunkPlace from = journey.found(r, position, bit);
      from.count = 1;
      b.copy(from, out(r, (r - position + n) % n));
    }
  }
}

void build(const Request& request, Builder& b) {
  if (request.operation.collective == all_gather)
    gather_all(b);
  else if (request.operation.collective == reduce_scatter)
    scatter_sums(b);
  else
    transpose(b);
}

// Only an all_to_all is symmetric: in the others, where block numbers wrap around, a run breaks in two on some ranks
// and not on others.
Symmetry symmetry(const Request& r) {
  return {
      {{r.operation.collective == all_to_all ? SymmetryAxis::Kind::rotate : SymmetryAxis::Kind::distinct, r.ranks()}}};
}

const RegisteredAlgorithm registered{{
    .name = "bruck",
    .summary = "one message a step, distances doubling; fewest steps for small blocks, at the price of local copies",
    .constraint = "any rank count",
    .serves = {all_gather, reduce_scatter, all_to_all},
    .refuses = [](const Request& r) { return refuses_shares(r, "as a step sends one message"); },
    .build = build,
    .mixes_blocks = true,
    .dims = UseOfDims::none,
    .symmetry = symmetry,
}};

}  // namespace
}  // namespace trellis::schedule
