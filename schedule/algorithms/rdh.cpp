// Neuron's recursive doubling and halving on a torus of chips. The ranks of a chip first sum directly among each other,
// one share of the buffer each. Then ranks at the same place of their chips halve over the torus, seen as a hypercube
// (4x4 has four axes). Doubling and a direct exchange within the chip return the result.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/patterns/recursive_halving.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// A side of 2^k chips has k axes. Axis j pairs chips that are mirror images within their stretch of 2^(j+1). So a ring
// of four is a square whose sides are the ring's links.
struct HypercubeAxis {
  Rank mirror = 0;  // XOR with a chip's number gives its partner
  Rank parity = 0;  // bits of a chip's number whose parity tells the axis' two sides apart
};

struct Team {
  Rank locals = 1;      // ranks per chip
  int steps = 0;        // axes of the hypercube
  bool blocks = false;  // blocks belong to ranks; otherwise chunks are numbered freely
  std::int32_t channel = 0;
  std::vector<HypercubeAxis> axes = {};

  Rank chips() const { return Rank{1} << steps; }
  Rank chip(Rank r) const { return r / locals; }
  Rank local(Rank r) const { return r % locals; }
  Rank beside(Rank r, Rank by) const { return chip(r) * locals + (local(r) + by + locals) % locals; }
  bool in_order() const { return blocks && locals == 1; }
  bool staged() const { return blocks && locals > 1 && steps > 0; }

  // Each place on the chip and each channel begins with another axis, so that all links of a chip are busy at once.
  const HypercubeAxis& axis(Rank place, int step) const {
    return axes[in_order() ? step : (step + place + channel) % steps];
  }
  Rank partner(Rank r, int step) const { return (chip(r) ^ axis(local(r), step).mirror) * locals + local(r); }
  Rank position(Rank r) const {
    if (in_order()) return chip(r);
    Rank found = 0;
    for (int step = 0; step < steps; ++step)
      found = found << 1 | (std::popcount(static_cast<std::uint32_t>(chip(r) & axis(local(r), step).parity)) & 1);
    return found;
  }
  // The block of the k-th position, counted from r's own so that the order is the same for all ranks.
  Rank block(Rank r, Rank k) const {
    Rank found = chip(r);
    for (int step = 0; step < steps; ++step)
      if (k >> (steps - 1 - step) & 1) found ^= axis(local(r), step).mirror;
    return found * locals + local(r);
  }

  // The shares of `count` positions, from `first` on, of the ranks at one place of their chips: a run of the buffer or,
  // where they are not contiguous there, of scratch.
  ChunkPlace held(Rank r, Rank place, Rank first, Rank count) const {
    if (staged()) return tmp(r, first, count, 0);
    return data(r, (std::int64_t{channel} * locals + place) * chips() + first, count);
  }
  ChunkPlace share(Rank r, Rank first, Rank count) const { return held(r, local(r), first, count); }
  ChunkPlace arrival(Rank r, Rank distance, Rank first, Rank count) const {
    const std::int64_t like = staged() ? 0 : share(r, first, count).first;
    return tmp(r, (std::int64_t{channel} * locals + distance) * chips() + first, count, like);
  }
};

// Calls move(rank, peer, distance) for every pair of ranks of a chip, in rounds in which each sends to one.
template <class Move>
void within_chips(Builder& b, const Team& team, Move move) {
  for (Rank distance = 1; distance < team.locals; ++distance)
    for (Rank r : b.senders([&](Rank me) { return team.beside(me, -distance); }))
      move(r, team.beside(r, distance), distance);
}

// A chip's contributions to rank r, in order of place on the chip, so that all chips add in the same order.
template <class Own, class Arrival>
std::vector<ChunkPlace> contributions(const Team& team, Rank r, Own own, Arrival arrival) {
  std::vector<ChunkPlace> sources;
  for (Rank local = 0; local < team.locals; ++local)
    sources.push_back(local == team.local(r) ? own : arrival((team.local(r) - local + team.locals) % team.locals));
  return sources;
}

// Every rank receives the rest of its chip's contributions to its share, as one run or one per block, and adds them.
void sum_within_chips(Builder& b, const Team& team) {
  if (team.locals == 1) return;
  const Rank all = team.chips(), runs = team.staged() ? all : 1, length = all / runs;
  const auto first = [&](Rank r, Rank k) { return team.staged() ? team.position(r) ^ k : 0; };
  const auto part = [&](Rank r, Rank owner, Rank k) {
    return team.staged() ? data(r, team.block(owner, k)) : team.held(r, team.local(owner), 0, length);
  };
  within_chips(b, team, [&](Rank r, Rank peer, Rank distance) {
    for (Rank k = 0; k < runs; ++k) b.copy(part(r, peer, k), team.arrival(peer, distance, first(peer, k), length));
  });
  for (Rank r : b.senders())
    for (Rank k = 0; k < runs; ++k) {
      const auto arrival = [&](Rank distance) { return team.arrival(r, distance, first(r, k), length); };
      b.reduce_all(contributions(team, r, part(r, r, k), arrival), team.share(r, first(r, k), length));
    }
}

// Copies what each rank has gathered from the ranks at its place on other chips to the other ranks of its chip and, if
// it lies in scratch, also to the own buffer.
void spread_within_chips(Builder& b, const Team& team) {
  const auto give = [&](Rank r, Rank peer, Rank) {
    if (!team.staged()) return b.copy(team.share(r, 0, team.chips()), team.held(peer, team.local(r), 0, team.chips()));
    for (Rank k = peer == r ? 1 : 0; k < team.chips(); ++k)
      b.copy(team.share(r, team.position(r) ^ k, 1), data(peer, team.block(r, k)));
  };
  within_chips(b, team, give);
  if (team.staged())
    for (Rank r : b.senders()) give(r, r, 0);
}

void build_lane(Collective collective, Builder& b, const Team& team) {
  if (reduces(collective)) {
    sum_within_chips(b, team);
    halve(b, team);
  }
  if (team.staged())
    for (Rank r : b.senders()) {
      const ChunkPlace staged = team.share(r, team.position(r), 1);
      if (collective == all_gather)
        b.copy(data(r, r), staged);
      else
        b.copy(staged, data(r, r));
    }
  if (collective != reduce_scatter) {
    redouble(b, team);
    spread_within_chips(b, team);
  }
}

// Short stretches first, alternating between sides: the first exchanges are the largest and should be with the nearest
// chip. If chips have one rank and blocks are in order, long stretches come first, so that a rank keeps one run.
std::vector<HypercubeAxis> axes_of(const std::vector<Rank>& dims, bool in_order) {
  std::vector<HypercubeAxis> by_side, by_length;
  int bits = 0, longest = 0;
  std::vector<std::vector<HypercubeAxis>> sides;
  for (std::size_t d = 1; d < dims.size(); ++d) {
    std::vector<HypercubeAxis> side;
    for (Rank reach = 1; reach < dims[d]; reach *= 2)
      side.push_back({.mirror = (2 * reach - 1) << bits, .parity = ((reach | 2 * reach) & (dims[d] - 1)) << bits});
    by_side.insert(by_side.begin(), side.rbegin(), side.rend());
    bits += static_cast<int>(side.size());
    longest = std::max(longest, static_cast<int>(side.size()));
    sides.push_back(std::move(side));
  }
  for (int j = 0; j < longest; ++j)
    for (const auto& side : sides)
      if (j < static_cast<int>(side.size())) by_length.push_back(side[j]);
  return in_order ? by_side : by_length;
}

std::string refuses(const Request& r) {
  for (std::size_t d = 1; d < r.dims.size(); ++d)
    if (!std::has_single_bit(static_cast<std::uint32_t>(r.dims[d])))
      return fmt::format("a torus {} chips long: expected a power of two", r.dims[d]);
  return refuses_halves(r);
}

std::int64_t pieces(const Request& r) {
  return by_block(r.operation.collective) ? 1 : std::int64_t{r.channels} * r.ranks();
}

void build(const Request& request, Builder& b) {
  const bool blocks = by_block(request.operation.collective);
  const Rank locals = request.dims.front();
  const auto axes = axes_of(request.dims, blocks && locals == 1);
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    Builder on = b.on_channel(channel);
    build_lane(
        request.operation.collective, on,
        {.locals = locals, .steps = static_cast<int>(axes.size()), .blocks = blocks, .channel = channel, .axes = axes});
  }
}

// Ranks of one chip are symmetric only if there is at most one axis: otherwise they begin with different axes.
Symmetry symmetry(const Request& r) {
  const bool alike = r.ranks() / r.dims.front() <= 2;
  Symmetry all{{{alike ? SymmetryAxis::Kind::rotate : SymmetryAxis::Kind::distinct, r.dims.front()}}};
  for (std::size_t d = 1; d < r.dims.size(); ++d) all.axes.push_back({SymmetryAxis::Kind::flip, r.dims[d]});
  return all;
}

const RegisteredAlgorithm registered{{
    .name = "rdh",
    .summary = "directly within a chip, recursive halving and doubling over the torus as a hypercube",
    .constraint = "dims are the ranks of a chip, then the torus, whose sides must be powers of two",
    .serves = {all_reduce, reduce_scatter, all_gather},
    .refuses = refuses,
    .pieces = pieces,
    .build = build,
    .mixes_blocks = true,
    .symmetry = symmetry,
    .joins_blocks = [](const Request&) { return true; },
    .usual_shape = UsualShape::machine,
}};

}  // namespace
}  // namespace trellis::schedule
