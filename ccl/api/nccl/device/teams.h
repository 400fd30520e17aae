// Teams: subsets of a communicator's ranks at equal distances, from one rank's view.
#pragma once

#include "ccl/api/nccl/device/types.h"

// Whether rank bPeer of team b is in team a; both teams are from the same rank's view.
static inline bool ncclTeamRankIsMember(ncclTeam_t a, ncclTeam_t b, int bPeer) {
  const int distance = (bPeer - b.rank) * b.stride, rank = a.rank + distance / a.stride;
  return distance % a.stride == 0 && rank >= 0 && rank < a.nRanks;
}

// The number in team a of the rank whose number in team b is bPeer.
static inline int ncclTeamRankToTeam(ncclTeam_t a, ncclTeam_t b, int bPeer) {
  return a.rank + (bPeer - b.rank) * b.stride / a.stride;
}

// Splits a team into runs of innerSize ranks. Inner: the run with this rank; outer: the ranks with its place in each
// run.
static inline ncclTeam_t ncclTeamInnerFactor(ncclTeam_t parent, int innerSize) {
  const ncclTeam_t inner = {innerSize, parent.rank % innerSize, parent.stride};
  return inner;
}
static inline ncclTeam_t ncclTeamOuterFactor(ncclTeam_t parent, int innerSize) {
  const ncclTeam_t outer = {parent.nRanks / innerSize, parent.rank / innerSize, parent.stride * innerSize};
  return outer;
}

// The index-th rank of parent that is not in subset. All ranks of subset must be in parent.
static inline int ncclTeamRankInDifference(ncclTeam_t parent, ncclTeam_t subset, int index) {
  const int step = subset.stride / parent.stride, first = parent.rank - subset.rank * step;
  int rank = index;
  for (int member = 0; member < subset.nRanks; ++member)
    if (first + member * step <= rank) ++rank;
  return rank;
}

// Resources are 128 bytes apart in their window.
static inline size_t ncclGetResourceBufferOffset(ncclDevResourceHandle_t h) { return (size_t)h * 128; }
