// Recursive halving and its inverse, recursive doubling. Members of a team meet in pairs, one pair per step. When
// halving, each sends the half of its range that the partner keeps. When doubling, each sends all that it holds.
#pragma once
#include <fmt/format.h>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {

// A Team defines the partners and the data layout:
//   int steps;                                         2^steps members
//   Rank partner(Rank, int step) const;                negative if the rank is not a member
//   Rank position(Rank) const;                         index of the share that the member ends halving with
//   ChunkPlace share(Rank, Rank first, Rank count);    shares first to first + count - 1, on the rank

// The range on rank `on` that `holder` keeps after halving in this step, or has before doubling in it.
template <class Team>
ChunkPlace half(const Team& team, Rank holder, int step, Rank on) {
  const Rank length = Rank{1} << (team.steps - 1 - step);
  return team.share(on, team.position(holder) / length * length, length);
}

template <class Team>
void halve(Builder& b, const Team& team) {
  for (int step = 0; step < team.steps; ++step)
    for (Rank r : b.senders([&](Rank me) { return team.partner(me, step); }))
      if (const Rank peer = team.partner(r, step); peer >= 0)
        b.reduce(half(team, peer, step, r), half(team, peer, step, peer));
}

template <class Team>
void redouble(Builder& b, const Team& team) {
  for (int step = team.steps - 1; step >= 0; --step)
    for (Rank r : b.senders([&](Rank me) { return team.partner(me, step); }))
      if (const Rank peer = team.partner(r, step); peer >= 0) b.copy(half(team, r, step, r), half(team, r, step, peer));
}

inline std::string refuses_halves(const Request& r) {
  if (r.segments > 1) return fmt::format("{} segments: expected 1, as each half goes in one message", r.segments);
  if (r.channels > 1 && by_block(r.operation.collective))
    return fmt::format("{} channels: expected 1, as shares of several blocks are not one run", r.channels);
  return "";
}

}  // namespace trellis::schedule
