// Rabenseifner's algorithm: recursive halving sums, recursive doubling distributes; log2 steps each way with the least
// traffic. A broadcast scatters before doubling; a reduce gathers after halving. If the rank count is no power of two,
// some members also act for a neighbouring rank, which is folded in first and gets the result last.
#include <bit>

#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/patterns/recursive_halving.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// The ranks are grouped into 2^steps seats: seat v holds the ranks from v*ranks/seats up to the first rank of the next
// seat: one or two. One of them, the member, exchanges data; the other one is its guest.
struct Team {
  Rank ranks = 1;
  int steps = 0;
  Rank root = 0;           // it is always the member of its seat; 0 if there is no root
  bool blocks = false;     // blocks belong to ranks; otherwise seats get chunks freely
  std::int64_t first = 0;  // first chunk of the lane, which has one per seat

  Rank seats() const { return Rank{1} << steps; }
  Rank first_rank(Rank seat) const { return static_cast<Rank>((std::int64_t{seat} * ranks) >> steps); }
  Rank seat(Rank r) const { return static_cast<Rank>((((std::int64_t{r} + 1) << steps) - 1) / ranks); }
  Rank member(Rank s) const { return seat(root) == s ? root : first_rank(s); }
  // The other rank of a seat with two ranks; negative if there is none.
  Rank other(Rank r) const {
    const Rank start = first_rank(seat(r)), end = first_rank(seat(r) + 1);
    return end - start < 2 ? -1 : r == start ? start + 1 : start;
  }
  bool seated(Rank r) const { return member(seat(r)) == r; }
  Rank guest(Rank r) const { return seated(r) ? other(r) : -1; }
  Rank host(Rank r) const { return seated(r) ? -1 : other(r); }

  // The first exchanges are the largest, so they should be with the nearest rank. If blocks belong to ranks, that would
  // split a message into many runs, so there the farthest comes first and each message is one run.
  Rank distance(int step) const { return Rank{1} << (blocks ? steps - 1 - step : step); }
  Rank partner(Rank r, int step) const { return seated(r) ? member(seat(r) ^ distance(step)) : -1; }
  Rank from_root(Rank r) const { return seat(r) ^ seat(root); }
  Rank position(Rank r) const {
    if (blocks) return seat(r);
    Rank reversed = 0;
    for (int i = 0; i < steps; ++i) reversed |= (from_root(r) >> i & 1) << (steps - 1 - i);
    return reversed;
  }
  ChunkPlace share(Rank r, Rank begin, Rank count) const {
    if (!blocks) return data(r, first + begin, count);
    const Rank block = first_rank(begin);
    return data(r, block, first_rank(begin + count) - block);
  }
  ChunkPlace everything(Rank r) const { return share(r, 0, seats()); }
};

void add_guests(Builder& b, const Team& team) {
  for (Rank r : b.senders([&](Rank me) { return team.guest(me); }))
    if (const Rank host = team.host(r); host >= 0) b.reduce(team.everything(r), team.everything(host));
}

void collect_guests(Builder& b, const Team& team) {
  for (Rank r : b.senders([&](Rank me) { return team.guest(me); }))
    if (const Rank host = team.host(r); host >= 0) b.copy(data(r, r), data(host, r));
}

template <class Part>
void tell_guests(Builder& b, const Team& team, Part part) {
  for (Rank r : b.senders([&](Rank me) { return team.host(me); }))
    if (const Rank guest = team.guest(r); guest >= 0) b.copy(part(r, guest), part(guest, guest));
}

// Halves the root's range until each seat has its share. Seats nearer to the root than the step's distance send.
void scatter_shares(Builder& b, const Team& team) {
  for (int step = 0; step < team.steps; ++step)
    for (Rank r : b.senders([&](Rank me) { return team.partner(me, step); })) {
      const Rank peer = team.partner(r, step);
      if (peer >= 0 && team.from_root(r) < team.distance(step))
        b.copy(half(team, peer, step, r), half(team, peer, step, peer));
    }
}

void gather_shares(Builder& b, const Team& team) {
  for (int step = team.steps - 1; step >= 0; --step)
    for (Rank r : b.senders([&](Rank me) { return team.partner(me, step); })) {
      const Rank peer = team.partner(r, step);
      if (peer >= 0 && team.from_root(peer) < team.distance(step))
        b.copy(half(team, r, step, r), half(team, r, step, peer));
    }
}

// Doubling after a scatter. A rank still has the halves that it sent in the scatter. It receives only in steps up to
// the one in which the scatter gave it its first data.
void fill_up(Builder& b, const Team& team) {
  for (int step = team.steps - 1; step >= 0; --step)
    for (Rank r : b.senders([&](Rank me) { return team.partner(me, step); })) {
      const Rank peer = team.partner(r, step);
      if (peer >= 0 && team.from_root(peer) >= team.distance(step))
        b.copy(half(team, r, step, r), half(team, r, step, peer));
    }
}

void build_lane(Collective collective, Builder& b, const Team& team) {
  const auto everything = [&](Rank on, Rank) { return team.everything(on); };
  const auto own_block = [](Rank on, Rank guest) { return data(on, guest); };
  switch (collective) {
    case broadcast:
      scatter_shares(b, team), fill_up(b, team);
      return tell_guests(b, team, everything);
    case reduce:
      add_guests(b, team), halve(b, team);
      return gather_shares(b, team);
    case reduce_scatter:
    case reduce_scatter_v:
      add_guests(b, team), halve(b, team);
      return tell_guests(b, team, own_block);
    case all_gather:
    case all_gather_v:
      collect_guests(b, team), redouble(b, team);
      return tell_guests(b, team, everything);
    default:
      add_guests(b, team), halve(b, team), redouble(b, team);
      return tell_guests(b, team, everything);
  }
}

int steps(const Request& r) { return std::bit_width(static_cast<std::uint32_t>(r.ranks())) - 1; }

std::int64_t pieces(const Request& r) {
  return by_block(r.operation.collective) ? 1 : std::int64_t{r.channels} << steps(r);
}

void build(const Request& request, Builder& b) {
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    Builder on = b.on_channel(channel);
    const Team team{.ranks = request.ranks(),
                    .steps = steps(request),
                    .root = rooted(request.operation.collective) ? request.operation.root : 0,
                    .blocks = by_block(request.operation.collective),
                    .first = std::int64_t{channel} << steps(request)};
    build_lane(request.operation.collective, on, team);
  }
}

const RegisteredAlgorithm registered{{
    .name = "halving_doubling",
    .summary = "recursive halving and doubling: least traffic in log2 steps, one message a step",
    .constraint = "any rank count; the rest beyond a power of two costs two more steps of the whole buffer",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, reduce_scatter_v, all_gather_v},
    .refuses = refuses_halves,
    .pieces = pieces,
    .build = build,
    .dims = UseOfDims::none,
    .symmetry = flipped,
    .joins_blocks = [](const Request&) { return true; },
}};

}  // namespace
}  // namespace trellis::schedule
