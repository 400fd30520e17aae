#include "ccl/divide/missing_rank.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ccl/failure/end_for_all.h"
#include "ccl/failure/mismatch.h"
#include "ccl/transports/describe_rank.h"

namespace trellis::ccl {
namespace {

using Call = MembershipNotice::Call;
using Stage = MembershipNotice::Stage;
using How = Culprit::How;

const MembershipNotice& seen_of(const SplitView& k, Rank r) { return k.seen[static_cast<std::size_t>(r)]; }

std::string ranks_of(std::span<const Rank> ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

// Whether that rank makes, or has made, a communicator without this rank.
bool leaves_out(const MembershipNotice& n, Rank me) {
  const bool failed = n.stage == Stage::over && n.blames >= 0;
  return n.call == Call::shrink && !failed && std::ranges::find(n.members, me) == n.members.end();
}

std::vector<Rank> leaving_out(const SplitView& k, std::span<const Rank> of) {
  std::vector<Rank> ranks;
  for (const Rank r : of)
    if (leaves_out(seen_of(k, r), k.me)) ranks.push_back(r);
  return ranks;
}

bool divides(const MembershipNotice& n) { return n.stage != Stage::over; }

// What a missing rank is doing instead.
std::string instead(const Transport& t, Rank r) {
  const RankActivity theirs = t.activity(r);
  return fmt::format("{} {}{}", theirs.running ? "it is in" : "its last was", text_of(theirs),
                     has_finalized(t, r) ? "; it has finalized the communicator" : "");
}

// Throws PeerLost if an awaited rank makes, or has made, a communicator without this rank. Earlier attempts of that
// rank count only if the parent has failed: otherwise it may still join this call.
void check_left_out(const Transport& t, const SplitView& k, std::span<const Rank> awaited, bool ended) {
  std::vector<Rank> others = leaving_out(k, awaited);
  if (!ended) std::erase_if(others, [&](Rank r) { return seen_of(k, r).attempt < k.mine.attempt; });
  if (others.empty()) return;
  throw PeerLost(
      k.me, -1,
      fmt::format("{}: {}, this one, was left out: {} went on without it, to a communicator of {}", word(k.mine.call),
                  who(t, k.me), ranks_of(others), ranks_of(seen_of(k, others.front()).members)));
}

void check_given_up(const Transport& t, const SplitView& k, std::span<const Rank> awaited) {
  for (const Rank r : awaited)
    if (const MembershipNotice& n = seen_of(k, r); !divides(n) && n.blames == k.me)
      throw PeerLost(k.me, -1,
                     fmt::format("{}: {}, this one, was given up by rank {}, which waited for it in a {}",
                                 word(k.mine.call), who(t, k.me), r, word(n.call)));
}

// The rank to report: one that is in no split or shrink, preferably one that is in no operation either, and so could
// come at any moment; else the first.
Rank absent_of(const Transport& t, const SplitView& k, std::span<const Rank> awaited) {
  for (const bool running : {false, true})
    for (const Rank r : awaited)
      if (!divides(seen_of(k, r)) && t.activity(r).running == running) return r;
  return awaited.front();
}

// Whether this shrink excludes the rank. Such a rank is not blamed: a member that waits for it in another communicator
// gives it up there at its own deadline, and then comes.
bool is_left_out(const SplitView& k, Rank r) {
  return r >= 0 && std::ranges::find(k.mine.members, r) == k.mine.members.end();
}

// What a culprit in this communicator is doing.
std::string place_of(const Transport& t, const Culprit& c) { return c.rank < 0 ? "" : "; " + instead(t, c.rank); }

}  // namespace

void miss(const RankWait& w, const SplitView& k, std::span<const Rank> awaited, bool ended, bool is_long_past) {
  const Transport& t = w.transport;
  const std::string call = word(k.mine.call);
  check_left_out(t, k, awaited, ended);
  check_given_up(t, k, awaited);
  const Rank first = awaited.front();
  Culprit c = culprit_of(w, first, awaited);
  if (is_left_out(k, c.rank)) c = {};
  const std::string stopped = c.how == How::stopped ? ", by a signal or a debugger" : "";
  if (c.how == How::stopped || c.how == How::still)
    throw PeerLost(c.rank, -1, fmt::format("{}: {} stands still{}{}", call, name_of(w, c), stopped, place_of(t, c)));
  if (c.how == How::idle)
    throw PeerLost(c.rank, -1,
                   fmt::format("{}: {} did not join the others in time{}", call, name_of(w, c), place_of(t, c)));
  const MembershipNotice& n = seen_of(k, first);
  if (divides(n) && (n.call != k.mine.call || n.members != k.mine.members))
    throw Mismatch(first, fmt::format("rank {} called {} for {} where rank {} called {} for {}", first, word(n.call),
                                      ranks_of(n.members), k.me, call, ranks_of(k.mine.members)));
  if (!is_long_past) return;
  const Rank absent = absent_of(t, k, awaited);
  const bool waits_elsewhere = t.activity(absent).elsewhere >= 0;  // perhaps for this rank, after a failure there
  throw PeerLost(waits_elsewhere ? -1 : absent, -1,
                 fmt::format("{}: {} did not join the others in time; {}", call, who(t, absent), instead(t, absent)));
}

void lose(Transport& t, const SplitView& k, Rank gone, bool ended) {
  check_left_out(t, k, {&gone, 1}, ended);
  throw PeerLost(gone, -1,
                 fmt::format("{}: {} {}; {}", word(k.mine.call), who(t, gone), how_it_went(t, gone), instead(t, gone)));
}

PeerLost given_up(const Transport& t, const SplitView& k, Rank lost) {
  const std::string call = word(k.mine.call);
  if (lost != k.me) return {lost, -1, fmt::format("{}: {} is lost, as another rank found", call, who(t, lost))};
  const std::vector<Rank> others = leaving_out(k, k.mine.members);
  return {lost, -1,
          fmt::format("{}: {}, this one, was given up by another that waited for it{}", call, who(t, lost),
                      others.empty() ? "" : fmt::format("; {} went on without it", ranks_of(others)))};
}

}  // namespace trellis::ccl
