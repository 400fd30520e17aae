#include "ccl/divide/split_protocol.h"

#include <algorithm>

namespace trellis::ccl {
namespace {

using Call = MembershipNotice::Call;
using Stage = MembershipNotice::Stage;
using What = SplitAction::What;

bool under_way(const MembershipNotice& n) { return n.stage != Stage::over; }

bool is_of_attempt(const MembershipNotice& n, const MembershipNotice& mine) {
  return n.call == mine.call && n.attempt == mine.attempt && n.members == mine.members;
}

bool is_here(const MembershipNotice& n, const MembershipNotice& mine) { return under_way(n) && is_of_attempt(n, mine); }

// Whether the rank has created the new communicator and returned from this attempt. A rank does that only after all
// members have joined.
bool has_made(const MembershipNotice& n, const MembershipNotice& mine) {
  return !under_way(n) && is_of_attempt(n, mine) && n.blames < 0;
}

bool has_failed(const MembershipNotice& n, const MembershipNotice& mine) {
  return n.broken != 0 && n.broken <= mine.attempt;
}

// Whether a rank that was seen in this attempt has stored the members' colors and keys: its notice says so, or it has
// moved on since.
bool has_read(const MembershipNotice& n, const MembershipNotice& mine) {
  if (is_here(n, mine)) return n.stage >= Stage::read;
  return has_finished(n, mine);
}

const MembershipNotice& seen_of(const SplitView& k, Rank r) { return k.seen[static_cast<std::size_t>(r)]; }

bool parts(const SplitView& k) { return k.mine.call == Call::split; }

// A shrink's group is the list of its members.
std::span<const Rank> group_of(const SplitView& k) {
  return parts(k) ? k.group : std::span<const Rank>(k.mine.members);
}

// The latest attempt at this call that any other rank is in.
std::uint32_t latest(const SplitView& k) {
  std::uint32_t attempt = k.mine.attempt;
  for (const Rank r : k.mine.members)
    if (const MembershipNotice& n = seen_of(k, r); under_way(n) && n.call == k.mine.call && n.members == k.mine.members)
      attempt = std::max(attempt, n.attempt);
  return attempt;
}

}  // namespace

std::vector<Rank> awaited(const SplitView& k) {
  std::vector<Rank> ranks;
  const bool reading = k.mine.stage == Stage::read;
  if (!reading || k.group.empty())
    for (const Rank r : k.mine.members)
      if (r != k.me && !(reading ? has_read(seen_of(k, r), k.mine) : is_here(seen_of(k, r), k.mine)))
        ranks.push_back(r);
  const std::span<const Rank> group = group_of(k);
  if (ranks.empty() && !group.empty() && group.front() != k.me) ranks.push_back(group.front());
  return ranks;
}

SplitAction next_of(const SplitView& k) {
  const bool reading = k.mine.stage == Stage::read;
  if (!reading)
    if (const std::uint32_t attempt = latest(k); attempt != k.mine.attempt) return {What::anew, attempt};
  if (parts(k))
    for (const Rank r : k.mine.members)
      if (has_failed(seen_of(k, r), k.mine)) return {What::fail, 0, r};
  const std::span<const Rank> group = group_of(k);
  if (!group.empty() && group.front() != k.me) {
    const MembershipNotice& leader = seen_of(k, group.front());
    if (is_here(leader, k.mine) && leader.stage == Stage::offers) return {What::join};
    return {};
  }
  if (!awaited(k).empty()) return {};
  if (!group.empty()) return {What::offer};
  return {reading ? What::part : What::read};
}

// Ignores notices of earlier attempts: the leader offers only after it has seen all members in this attempt, so such
// notices are outdated.
Rank gone(const SplitView& k, std::span<const Rank> missing) {
  const auto found = std::ranges::find_if(missing, [&](Rank r) {
    const MembershipNotice& n = seen_of(k, r);
    return n.attempt >= k.mine.attempt && !is_here(n, k.mine) && !has_made(n, k.mine);
  });
  return found == missing.end() ? -1 : *found;
}

bool has_finished(const MembershipNotice& theirs, const MembershipNotice& mine) {
  const bool gone_on = theirs.attempt > mine.attempt || (theirs.attempt == mine.attempt && !under_way(theirs));
  return gone_on && !has_failed(theirs, mine);
}

std::vector<Rank> group_of(Rank me, std::span<const ColorKey> wishes) {
  std::vector<Rank> ranks;
  for (Rank r = 0; r < static_cast<Rank>(wishes.size()); ++r)
    if (wishes[static_cast<std::size_t>(r)].color == wishes[static_cast<std::size_t>(me)].color) ranks.push_back(r);
  std::ranges::stable_sort(ranks, {}, [&](Rank r) { return wishes[static_cast<std::size_t>(r)].key; });
  return ranks;
}

}  // namespace trellis::ccl
