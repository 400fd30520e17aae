// Recursive halving and its reverse, doubling. The members of a team meet in pairs, one pair a step. Halving, each
// gives the other the half of its range that the other is to keep; doubling, each gives the other all that it holds.
#pragma once
#include "schedule/builder.h"

namespace trellis::schedule {

// A Team says who meets whom and where things lie:
//   int steps;                                    2^steps members
//   Rank partner(Rank, int step) const;           negative for a rank that is no member
//   Rank position(Rank) const;                    of what the member ends halving with, among the members' shares
//   Place share(Rank, Rank first, Rank count);    those positions, as they lie on the rank

// What `holder` keeps when it halves in this step, and starts from when it doubles, as it lies on rank `on`.
template <class Team>
Place half(const Team& team, Rank holder, int step, Rank on) {
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

}  // namespace trellis::schedule
