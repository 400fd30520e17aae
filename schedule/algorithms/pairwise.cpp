// One partner at a time: in each round every rank exchanges one block with one other, so that few messages are under
// way and no receiver is crowded. Partners differ in one bit pattern where the count is a power of two, else they lie
// equally far ahead and behind.
#include <fmt/format.h>

#include <bit>

#include "schedule/algorithm.h"

namespace trellis::schedule {
namespace {

using enum Collective;

bool power_of_two(Rank n) { return std::has_single_bit(static_cast<std::uint32_t>(n)); }

// Who meets whom in rounds 1 to ranks - 1. A shift is followed by its opposite, so that what one round sends from is
// where the other arrives.
struct Partners {
  Rank ranks = 1;

  bool flipped() const { return power_of_two(ranks); }
  Rank distance(Rank round) const { return round % 2 == 1 ? (round + 1) / 2 : ranks - round / 2; }
  Rank target(Rank r, Rank round) const { return flipped() ? r ^ round : (r + distance(round)) % ranks; }
  Rank source(Rank r, Rank round) const { return flipped() ? r ^ round : (r - distance(round) + ranks) % ranks; }
  // After this round, the rounds from the one returned on have sent from everywhere that they arrive; 0: not yet.
  Rank closes(Rank round) const {
    if (flipped()) return round;
    return round % 2 == 0 ? round - 1 : round == ranks - 1 ? round : 0;
  }
};

struct Lane {
  std::int32_t first = 0;     // chunk of a block
  std::int32_t segments = 1;  // chunks of it
  std::int64_t pieces = 1;    // chunks of a block in all lanes

  std::int64_t chunk(Rank block, std::int32_t segment = 0) const {
    return std::int64_t{block} * pieces + first + segment;
  }
};

void exchange(const Request& request, Builder& b, const Lane& lane) {
  const Partners partners{b.ranks()};
  const bool adding = reduces(request.collective);
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

// In place a block arrives where one for the same rank may still lie: it waits in scratch until that one has been sent.
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
    if (request.collective == all_to_all || request.collective == all_to_all_v)
      transpose(on, lane);
    else
      exchange(request, on, lane);
  }
}

std::string refuses(const Request& r) {
  if (r.segments > 1 && !reduces(r.collective))
    return fmt::format("{} segments: expected 1, as a block is not passed on", r.segments);
  return "";
}

Symmetry symmetry(const Request& r) {
  return {{{power_of_two(r.ranks()) ? Axis::Kind::flip : Axis::Kind::rotate, r.ranks()}}};
}

const Registered registered{{
    .name = "pairwise",
    .summary = "one partner a round, n-1 rounds; least traffic, few messages at a time",
    .constraint = "any rank count",
    .serves = {all_to_all, all_to_all_v, reduce_scatter, reduce_scatter_v, all_gather, all_gather_v},
    .refuses = refuses,
    .pieces = [](const Request& r) { return r.shares(); },
    .build = build,
    .in_a_row = true,
    .symmetry = symmetry,
}};

}  // namespace
}  // namespace trellis::schedule
