// KangaRing, as the Neuron runtime's documentation describes it. One of the two ranks of each pair on a chip is
// primary; only primaries form the ring. In an all_gather, one read feeds both the next primary and the reader's own
// secondary. In a reduction, the primary adds the arriving data, its own and its secondary's in one pass. Lanes come in
// twos that swap the roles within pairs and the ring's direction, so that every rank is active in half of them.
#include <fmt/format.h>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// The data of one pair of ranks goes around in `parts`: one block per rank, or one run for both.
struct Lane {
  Rank pairs = 0;
  Rank first_is_secondary = 0;
  bool backward = false;
  bool blocks = false;
  std::int32_t index = 0;  // among the lanes
  std::int32_t lanes = 1;
  std::int32_t segments = 1;

  Rank parts() const { return blocks ? 2 : 1; }
  Rank ahead(Rank pair, Rank by) const { return (backward ? pair - by % pairs + pairs : pair + by) % pairs; }
  Rank behind(Rank pair, Rank by) const { return (backward ? pair + by : pair - by % pairs + pairs) % pairs; }
  Rank primary(Rank pair) const { return 2 * pair + first_is_secondary; }
  Rank owner(Rank pair, Rank part) const { return blocks ? 2 * pair + part : primary(pair); }
  std::int64_t chunk(Rank pair, Rank part, std::int32_t segment) const {
    const std::int64_t place = std::int64_t{index} * segments + segment;
    return blocks ? (std::int64_t{pair} * 2 + part) * lanes * segments + place : place * pairs + pair;
  }
  std::int64_t chunks() const { return std::int64_t{pairs} * parts() * lanes * segments; }
};

constexpr Rank mate(Rank r) { return r ^ 1; }
constexpr Rank pair_of(Rank r) { return r / 2; }

// Does the sums of step `step`. A pair's data is summed first by the next pair ahead, then by the one after it, and so
// on, and last by its owner.
void add_up(Builder& b, const Lane& lane, Rank step, Rank part, std::int32_t segment) {
  const auto adder = [&](Rank pair) { return step + 1 == lane.pairs ? lane.owner(pair, part) : lane.primary(pair); };
  const auto chunk = [&](Rank pair) { return lane.chunk(lane.behind(pair, step + 1), part, segment); };
  const auto previous = [&](Rank r) { return lane.primary(lane.behind(pair_of(r), 1)); };
  const std::int64_t aside = lane.chunks();
  for (Rank r : b.senders(mate)) {
    const Rank to = adder(pair_of(r));
    const std::int64_t c = chunk(pair_of(r));
    if (r == to) continue;
    if (step == 0)
      b.reduce(data(r, c), data(to, c));
    else
      b.copy(data(r, c), tmp(to, aside + c, 1, c));
  }
  if (step == 0) return;
  for (Rank r : b.senders(previous)) {
    if (r != lane.primary(pair_of(r))) continue;
    const Rank next = lane.ahead(pair_of(r), 1);
    b.copy(data(r, chunk(next)), tmp(adder(next), chunk(next), 1, chunk(next)));
  }
  for (Rank r : b.senders()) {
    const std::int64_t c = chunk(pair_of(r));
    if (r == adder(pair_of(r))) b.reduce_all({tmp(r, c, 1, c), data(r, c), tmp(r, aside + c, 1, c)}, data(r, c));
  }
}

// The data of the pair `step` behind goes to the next primary and, in the same read, to the reader's mate. Only a
// secondary's own block starts as two sends. With one send, primaries could not all receive in the same order.
void pass_on(Builder& b, const Lane& lane, Rank step, Rank part, std::int32_t segment) {
  const auto reader = [&](Rank pair) { return step == 0 ? lane.owner(pair, part) : lane.primary(pair); };
  const auto previous = [&](Rank r) { return reader(lane.behind(pair_of(r), 1)); };
  const auto next = [&](Rank r) { return lane.primary(lane.ahead(pair_of(r), 1)); };
  const auto each_reader = [&](const std::vector<Rank>& ranks, auto move) {
    for (Rank r : ranks)
      if (r == reader(pair_of(r))) move(r, lane.chunk(lane.behind(pair_of(r), step), part, segment));
  };
  const auto to_mate = [&](Rank r, std::int64_t c) { b.copy(data(r, c), data(mate(r), c)); };
  if (step + 1 == lane.pairs) return each_reader(b.senders(mate), to_mate);
  if (reader(0) == lane.primary(0))
    return each_reader(b.senders(previous, mate),
                       [&](Rank r, std::int64_t c) { b.copy_twice(data(r, c), data(next(r), c), data(mate(r), c)); });
  each_reader(b.senders(previous), [&](Rank r, std::int64_t c) { b.copy(data(r, c), data(next(r), c)); });
  each_reader(b.senders(mate), to_mate);
}

void build_lane(const Request& request, Builder& b, const Lane& lane) {
  const auto all_steps = [&](auto move) {
    for (Rank step = 0; step < lane.pairs; ++step)
      for (Rank part = 0; part < lane.parts(); ++part)
        for (std::int32_t segment = 0; segment < lane.segments; ++segment) move(b, lane, step, part, segment);
  };
  if (reduces(request.operation.collective)) all_steps(add_up);
  if (request.operation.collective != reduce_scatter && request.operation.collective != reduce_scatter_v)
    all_steps(pass_on);
}

std::string refuses(const Request& r) {
  if (r.ranks() > 1 && r.dims.front() % 2 != 0)
    return fmt::format("{} ranks on a chip: expected an even number, to form pairs", r.dims.front());
  if (2 * r.channels > most_channels)
    return fmt::format("{} channels, of two lanes each: expected at most {}", r.channels, most_channels / 2);
  return "";
}

std::int64_t pieces(const Request& r) {
  return 2 * r.shares() * (by_block(r.operation.collective) ? 1 : std::max<Rank>(1, r.ranks() / 2));
}

void build(const Request& request, Builder& b) {
  for (std::int32_t index = 0; index < 2 * request.channels; ++index) {
    Builder on = b.on_channel(index);
    build_lane(request, on,
               {.pairs = request.ranks() / 2,
                .first_is_secondary = index % 2,
                .backward = (index % 2 == 1) != (index / 2 % 2 == 1),
                .blocks = by_block(request.operation.collective),
                .index = index,
                .lanes = 2 * request.channels,
                .segments = request.segments});
  }
}

Symmetry symmetry(const Request& r) {
  if (r.ranks() == 1) return {{{SymmetryAxis::Kind::distinct, 1}}};
  return {{{SymmetryAxis::Kind::distinct, 2}, {SymmetryAxis::Kind::rotate, r.ranks() / 2}}};
}

const RegisteredAlgorithm registered{{
    .name = "kangaring",
    .summary = "a ring of every second rank, which reads and writes for its mate on the chip too",
    .constraint = "an even number of ranks on a chip, the innermost dimension",
    .serves = {all_reduce, reduce_scatter, all_gather, reduce_scatter_v, all_gather_v},
    .refuses = refuses,
    .pieces = pieces,
    .build = build,
    .dims = UseOfDims::none,
    .symmetry = symmetry,
    .usual_shape = UsualShape::chips,
}};

}  // namespace
}  // namespace trellis::schedule
