// The protocol of split and shrink: what a rank does next, as pure functions of what all ranks show on their boards.
// tests/ccl/split_protocol.cpp runs them on every state that could be read from the boards.
#pragma once

#include <span>
#include <vector>

#include "ccl/transports/join_outcome.h"
#include "ccl/transports/membership_notice.h"

namespace trellis::ccl {

// What this rank has read from the boards. It may be out of date, but each board's states are seen in their order.
struct SplitView {
  const MembershipNotice& mine;
  Rank me;
  std::span<const MembershipNotice> seen;  // by rank, with this rank's own
  std::span<const Rank> group;             // members of the new communicator, leader first; empty: not known yet
};

struct SplitAction {
  enum class What {
    wait,
    anew,   // begin `attempt`, a later one, and show that
    read,   // store the wishes (colors and keys) that are seen now, and show that
    part,   // all have stored the wishes: the group is the ranks with this rank's color
    offer,  // create the new communicator's memory, publish where it is, and join
    join,   // join the leader's offer
    fail    // `rank` has failed in this attempt, and so has the split
  };
  What what = What::wait;
  std::uint32_t attempt = 0;
  Rank rank = -1;
};

SplitAction next_of(const SplitView&);

// The ranks that this rank waits for before it joins or offers: the members that are not yet as far as this rank; once
// there are none, the leader.
std::vector<Rank> awaited(const SplitView&);

// While the group's members join the leader's offer: the first of `missing` that can no longer join; -1: none.
Rank gone(const SplitView&, std::span<const Rank> missing);

// Whether a rank that showed `theirs` has done all that this attempt needs of it, so that an abort that follows does
// not concern the attempt.
bool has_finished(const MembershipNotice& theirs, const MembershipNotice& mine);

// The ranks that chose the same color as `me`, ordered by key and then by rank.
std::vector<Rank> group_of(Rank me, std::span<const ColorKey> wishes);

}  // namespace trellis::ccl
