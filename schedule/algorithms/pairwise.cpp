// Pairwise exchange: in each round every rank exchanges one block with one partner, so few messages are in flight and
// no receiver is crowded. For powers of two, partners differ by an XOR pattern; otherwise they are equally far ahead
// and behind.
#include <fmt/format.h>

#include <bit>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {
namespace {

using enum Collective;

bool power_of_two(Rank n) { return std::has_single_bit(static_cast<std::uint32_t>(n)); }

// The partners of rounds 1 to ranks - 1. A shift is followed by the opposite shift, in which each rank receives from
// the rank that it has just sent to.
struct Partners {
  Rank ranks = 1;

  bool flipped() const { return power_of_two(ranks); }
  Rank distance(Rank round) const { return round % 2 == 1 ? (round + 1) / 2 : ranks - round / 2; }
  Rank target(Rank r, Rank round) const { return flipped() ? r ^ round : (r + distance(round)) % ranks; }
  Rank source(Rank r, Rank round) const { return flipped() ? r ^ round : (r - distance(round) + ranks) % ranks; }
  // Returns the first of the rounds whose arrivals may move from scratch to their places after this round, because what
  // lay there has been sent. This round is the last of them. 0: there are none.
  Rank closes(Rank round) const {
    if (flipped()) return round;
    return round % 2 == 0 ? round - 1 : round == ranks - 1 ? round : 0;
  }
};

struct Lane {
  std::int32_t first = 0;     // first chunk within a block
  std::int32_t segments = 1;  // chunks per block in this lane
  std::int64_t pieces = 1;    // chunks per block in all lanes

  std::int64_t chunk(Rank block, std::int32_t segment = 0) const {
    return std::int64_t{block} * pieces + first + segment;
  }
};

void exchange(const Request& request, Builder& b, const Lane& lane) {
  const Partners partners{b.ranks()};
  const bool adding = reduces(request.operation.collective);
  for (Rank round = 1; round < b.ranks(); ++round)
    for (std::int32_t s = 0; s < lane.segments; ++s)
      for (Rank r : b.senders([&](Rank me) { return partners.source(me, round); })) {
        const Rank target = partners.target(r, round);
        if (adding)
          b.reduce(data(r, lane.chunk(target, s)), data(target, lane.chunk(target, s)));
        else
          b.copy(data(r, lane.chunk(r, s)), data(target, lane.chunk(r, s)));
      }
}

// In place, an arriving block belongs where the block for its sender may still lie. It waits in scratch until that
// block has been sent.
void transpose(Builder& b, const Lane& lane) {
  const Partners partners{b.ranks()};
  const bool staged = b.in_place();
  for (Rank round = 1; round < b.ranks(); ++round) {
    for (Rank r : b.senders([&](Rank me) { return partners.source(me, round); })) {
      const Rank target = partners.target(r, round);
      const std::int64_t arrives = lane.chunk(r);
      b.copy(in(r, lane.chunk(target)), staged ? tmp(target, arrives, 1, arrives) : out(target, arrives));
    }
    const Rank first = partners.closes(round);
    if (!staged || first == 0) continue;
    for (Rank r : b.senders())
      for (Rank closed = first; closed <= round; ++closed) {
        const std::int64_t c = lane.chunk(partners.source(r, closed));
        b.copy(tmp(r, c, 1, c), out(r, c));
      }
  }
  for (Rank r : b.senders()) b.copy(in(r, lane.chunk(r)), out(r, lane.chunk(r)));
}

void build(const Request& request, Builder& b) {
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    Builder on = b.on_channel(channel);
    const Lane lane{.first = channel * request.segments, .segments = request.segments, .pieces = request.shares()};
    if (request.operation.collective == all_to_all || request.operation.collective == all_to_all_v)
      transpose(on, lane);
    else
      exchange(request, on, lane);
  }
}

std::string refuses(const Request& r) {
  if (r.segments > 1 && !reduces(r.operation.collective))
    return fmt::format("{} segments: expected 1, as a block is not passed on", r.segments);
  return "";
}

Symmetry symmetry(const Request& r) {
  return {{{power_of_two(r.ranks()) ? SymmetryAxis::Kind::flip : SymmetryAxis::Kind::rotate, r.ranks()}}};
}

const RegisteredAlgorithm registered{{
    .name = "pairwise",
    .summary = "one partner a round, n-1 rounds; least traffic, few messages at a time",
    .constraint = "any rank count",
    .serves = {all_to_all, all_to_all_v, reduce_scatter, reduce_scatter_v, all_gather, all_gather_v},
    .refuses = refuses,
    .pieces = [](const Request& r) { return r.shares(); },
    .build = build,
    .dims = UseOfDims::none,
    .symmetry = symmetry,
    .renown = 5,
}};

}  // namespace
}  // namespace trellis::schedule
