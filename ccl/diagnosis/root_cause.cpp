#include "ccl/diagnosis/root_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ccl/diagnosis/call_difference.h"

namespace trellis::ccl {
namespace {

std::string is(const std::vector<CommunicatorRank>& nodes) { return nodes.size() == 1 ? "is" : "are"; }
std::string was(const std::vector<CommunicatorRank>& nodes) { return nodes.size() == 1 ? "it was" : "they were"; }

class Search {
 public:
  Search(const JobEvidence& job, const WaitGraph& waits, const Wording& words)
      : job_(job), waits_(waits), words_(words) {}

  std::string cause() const {
    if (const std::string text = difference(); !text.empty()) return text;
    const std::optional<CommunicatorRank> first = first_trouble();
    if (first) return from_trouble(*first);
    if (const std::string text = from_launch(); !text.empty()) return text;
    return from_waiting(waits_.waiting());
  }

 private:
  const RankDump& dump(CommunicatorRank n) const { return job_.communicators[n.communicator].dumps.at(n.rank); }
  bool made(CommunicatorRank n) const { return !job_.communicators[n.communicator].communicator.empty(); }

  std::string difference() const {
    for (std::size_t c = 0; c < job_.communicators.size(); ++c)
      if (const auto d = first_difference(job_.communicators[c]))
        return fmt::format("{} called {} as operation {}{}, where {} called {}", ranks(c, d->ranks), d->call,
                           d->operation, job_.communicators.size() > 1 ? " of " + words_.name(c) : "",
                           ranks(c, d->others), d->usual);
    return "";
  }
  std::string ranks(std::size_t c, const std::vector<Rank>& ranks) const {
    std::vector<CommunicatorRank> nodes;
    for (const Rank r : ranks) nodes.push_back({c, r});
    return words_.ranks(nodes);
  }

  // The dump with the earliest failure, followed back to its cause.
  std::optional<CommunicatorRank> first_trouble() const {
    std::optional<CommunicatorRank> first;
    for (std::size_t c = 0; c < job_.communicators.size(); ++c)
      for (const auto& [rank, d] : job_.communicators[c].dumps)
        if (d.trouble != FailureKind::none && (!first || d.moment_ns < dump(*first).moment_ns))
          first = CommunicatorRank{c, rank};
    for (std::size_t steps = 0; first && steps <= job_.communicators.size() + 1; ++steps) {
      const std::optional<CommunicatorRank> before = came_from(*first);
      if (!before) break;
      first = before;
    }
    return first;
  }

  // The failure on another rank, or on another communicator of this rank, that caused this one.
  std::optional<CommunicatorRank> came_from(CommunicatorRank n) const {
    const RankDump& d = dump(n);
    if (d.trouble == FailureKind::aborted && d.blamed != d.rank) {
      const auto& dumps = job_.communicators[n.communicator].dumps;
      const auto found = dumps.find(d.blamed);
      if (found != dumps.end() && found->second.trouble != FailureKind::none)
        return CommunicatorRank{n.communicator, d.blamed};
    }
    if (d.trouble != FailureKind::elsewhere || d.process_identity.empty()) return std::nullopt;
    for (std::size_t c = 0; c < job_.communicators.size(); ++c)
      for (const auto& [rank, other] : job_.communicators[c].dumps)
        if (other.process_identity == d.process_identity && other.trouble != FailureKind::none &&
            other.trouble != FailureKind::elsewhere)
          return CommunicatorRank{c, rank};
    return std::nullopt;
  }

  std::string from_trouble(CommunicatorRank n) const {
    const RankDump& d = dump(n);
    if (!made(n)) return never_made(n);
    if (d.trouble == FailureKind::aborted && d.blamed >= 0) return aborted({n.communicator, d.blamed});
    if (const std::string text = closed_early(n); !text.empty()) return text;
    if (const std::string text = in_something_else(n); !text.empty()) return text;
    if (d.trouble != FailureKind::lost) {
      const InferredRankState& p = waits_.at(n);
      return fmt::format("{} failed {}: {}", words_.ranks({n}), state(n, p), d.error);
    }
    std::vector<CommunicatorRank> from = waits_.waiting();
    if (waits_.at(n).last.under_way) from = {n};
    if (const std::string text = from_waiting(from); !text.empty()) return text;
    return blamed(n);
  }

  // The cause if this rank's collective met a call of another kind, such as a send: the ranks wait for each other in a
  // circle, which this describes. Empty: it did not.
  std::string in_something_else(CommunicatorRank n) const {
    const InferredRankState& p = waits_.at(n);
    if (dump(n).trouble != FailureKind::mismatch || !p.last.under_way || p.last.points) return "";
    const std::vector<CommunicatorRank> circle = waits_.circle({n});
    return circle.empty() ? "" : around(circle);
  }

  // The cause if this rank closed the communicator before an operation that others have begun: it found a mismatch
  // outside of any operation, which only a rank that closes a communicator does. Empty: it did not.
  std::string closed_early(CommunicatorRank n) const {
    const InferredRankState& p = waits_.at(n);
    if (dump(n).trouble != FailureKind::mismatch || p.last.under_way) return "";
    const DumpedEntry next = furthest(n.communicator);
    if (!next.collective() || next.operation <= p.last.operation) return "";
    return fmt::format("{} closed the communicator {} and never came to {}", words_.ranks({n}),
                       words_.after(n.communicator, p.last), where(n, next));
  }

  std::string state(CommunicatorRank n, const InferredRankState& p) const {
    return p.last.under_way ? "in " + words_.where(n.communicator, p.last) : words_.after(n.communicator, p.last);
  }

  std::string aborted(CommunicatorRank aborter) const {
    const InferredRankState& p = waits_.at(aborter);
    std::string text = fmt::format("{} aborted the communicator {}", words_.ranks({aborter}), state(aborter, p));
    const std::vector<CommunicatorRank> ends =
        p.last.under_way ? waits_.ends({aborter}) : std::vector<CommunicatorRank>{};
    if (!ends.empty()) text += fmt::format(", where it waited for {}", words_.ranks(ends));
    return text;
  }

  // The cause if the wait graph shows none: describes the rank that this rank's dump blames, as far as it is known.
  std::string blamed(CommunicatorRank n) const {
    const Rank r = dump(n).blamed;
    if (r < 0) return fmt::format("{} failed: {}", words_.ranks({n}), dump(n).error);
    const CommunicatorRank lost{n.communicator, r};
    const InferredRankState& p = waits_.at(lost);
    const DumpedEntry& in = waits_.at(n).last;
    if (p.own != nullptr && p.own->trouble == FailureKind::lost && p.own->blamed == r) return came_late(lost, n);
    if (!p.known()) return fmt::format("{} left no dump, and was lost in {}", words_.ranks({lost}), where(n, in));
    if (p.gone() || p.stopped() || p.silent()) return ended(lost, in);
    if (p.last.under_way) return fmt::format("{} did not move on in {}", words_.ranks({lost}), where(lost, p.last));
    return fmt::format("{} was lost {}: {}", words_.ranks({lost}), words_.after(lost.communicator, p.last),
                       dump(n).error);
  }

  std::string came_late(CommunicatorRank lost, CommunicatorRank other) const {
    const InferredRankState& p = waits_.at(lost);
    const DumpedEntry& theirs = waits_.at(other).last;
    if (!p.last.under_way || lost == other || !p.is_in(theirs))
      return fmt::format("{} came too late: the others had given it up {}", words_.ranks({lost}),
                         words_.after(lost.communicator, p.last));
    return fmt::format("{} came to {} {:.1f} s after the others, who had given it up", words_.ranks({lost}),
                       where(lost, p.last), static_cast<double>(p.last.began_ns - theirs.began_ns) / 1e9);
  }
  std::string where(CommunicatorRank n, const DumpedEntry& e) const { return words_.where(n.communicator, e); }

  std::string never_made(CommunicatorRank n) const {
    const CommunicatorEvidence& m = job_.communicators[n.communicator];
    std::vector<CommunicatorRank> missing;
    const RankDump& d = dump(n);
    // A rank without a dump may have come, and been killed while it waited. So a dump that lists the absent ranks
    // decides which ranks are missing; if there is none, all ranks without a dump count.
    const auto knows = std::ranges::find_if(m.dumps, [](const auto& one) { return !one.second.absent.empty(); });
    const std::vector<Rank>* const absent = knows == m.dumps.end() ? nullptr : &knows->second.absent;
    for (Rank r = 0; r < m.ranks; ++r)
      if (!m.dumps.contains(r) && (absent == nullptr || std::ranges::find(*absent, r) != absent->end()))
        missing.push_back({n.communicator, r});
    if (missing.empty() || d.trouble != FailureKind::lost)
      return fmt::format("{} could not make a communicator of {} ranks: {}", words_.ranks({n}), m.ranks, d.error);
    std::string text = fmt::format("{} never came to make a communicator of {} ranks", words_.ranks(missing), m.ranks);
    for (const CommunicatorRank& r : missing)
      if (const LaunchedRank* l = job_.launched_as(r.rank); l != nullptr && !l->end.empty() && !l->told)
        text += fmt::format("; rank {}'s process {}", r.rank, l->end);
    return text;
  }

  // The cause that the launch records show: the first process that failed. Empty: they show none.
  std::string from_launch() const {
    const LaunchedRank* const first = job_.first_failed();
    if (first == nullptr) {
      for (const LaunchRecord& record : job_.launches)
        if (!record.heard.empty()) return record.heard;
      return "";
    }
    for (std::size_t c = 0; c < job_.communicators.size(); ++c)
      for (Rank r = 0; r < job_.communicators[c].ranks; ++r)
        if (job_.launched({c, r}, waits_.at({c, r}).process()) == first) return ended({c, r}, furthest(c));
    return fmt::format("rank {}'s process {}", first->rank, first->end);
  }

  DumpedEntry furthest(std::size_t c) const {
    DumpedEntry last;
    for (const InferredRankState& p : waits_.places(c))
      if (p.last.operation > last.operation || (p.last.under_way && p.last.operation == last.operation)) last = p.last;
    return last;
  }

  std::string from_waiting(const std::vector<CommunicatorRank>& from) const {
    const std::vector<CommunicatorRank> ends = waits_.ends(from);
    for (const auto& kind : {gone, stopped, silent, idle, unknown})
      if (const std::string text = end_of_kind(from, ends, kind); !text.empty()) return text;
    if (const std::vector<CommunicatorRank> circle = waits_.circle(from); !circle.empty()) return around(circle);
    return "";
  }

  static bool gone(const InferredRankState& p) { return p.known() && p.gone(); }
  static bool stopped(const InferredRankState& p) { return p.known() && p.stopped(); }
  static bool silent(const InferredRankState& p) { return p.known() && p.silent(); }
  static bool idle(const InferredRankState& p) { return p.known() && !p.gone() && !p.stopped() && !p.silent(); }
  static bool unknown(const InferredRankState& p) { return !p.known(); }

  // Describes the first of `ends` that is of this kind, with those that are in or after the same operation of the same
  // communicator. Ranks that are gone are described one at a time. Empty: none is of this kind.
  std::string end_of_kind(const std::vector<CommunicatorRank>& from, const std::vector<CommunicatorRank>& ends,
                          bool (*kind)(const InferredRankState&)) const {
    std::vector<CommunicatorRank> alike;
    for (const CommunicatorRank& n : ends) {
      const InferredRankState& p = waits_.at(n);
      if (!kind(p)) continue;
      if (!alike.empty()) {
        const InferredRankState& first = waits_.at(alike.front());
        if (alike.front().communicator != n.communicator || first.last.operation != p.last.operation ||
            first.last.under_way != p.last.under_way || kind == gone)
          continue;
      }
      alike.push_back(n);
    }
    if (alike.empty()) return "";
    const CommunicatorRank n = alike.front(), waiter = waiter_for(from, n);
    const DumpedEntry& in = waits_.at(waiter).last;
    if (kind == unknown)
      return fmt::format("{} left no dump: killed, frozen, ended before, or never started", words_.ranks(alike));
    if (kind != idle) return ended(n, in);
    return never_came(alike, waiter);
  }

  // A rank that waits for `end` directly.
  CommunicatorRank waiter_for(const std::vector<CommunicatorRank>& from, CommunicatorRank end) const {
    std::vector<CommunicatorRank> all = from;
    for (const CommunicatorRank& n : waits_.waiting()) all.push_back(n);
    for (const CommunicatorRank& n : all) {
      const std::vector<CommunicatorRank> whom = waits_.of(n);
      if (std::ranges::count(whom, end) != 0) return n;
    }
    return from.front();
  }

  std::string never_came(const std::vector<CommunicatorRank>& late, CommunicatorRank waiter) const {
    const InferredRankState& p = waits_.at(late.front());
    const DumpedEntry& in = waits_.at(waiter).last;
    const std::string who = words_.ranks(late);
    if (p.last.under_way)
      return fmt::format("{} {} still in {}, for which {} in {}", who, is(late), where(late.front(), p.last),
                         words_.ranks({waiter}) + " waits", where(waiter, in));
    const std::string own = fmt::format("{} in code of {} own {}", was(late), late.size() == 1 ? "its" : "their",
                                        words_.after(late.front().communicator, p.last));
    if (in.points) {
      const bool receives = receives_from(waiter, late.front().rank);
      return fmt::format("{} never {} what {} {}: {}", who, receives ? "sent" : "received", words_.ranks({waiter}),
                         receives ? "waits to receive from it" : "sends to it", own);
    }
    return fmt::format("{} never came to {}: {}", who, where(waiter, in), own);
  }

  bool receives_from(CommunicatorRank n, Rank from) const {
    if (waits_.at(n).own == nullptr) return false;
    for (const PendingMessage& p : waits_.at(n).own->pending)
      if (p.peer == from) return p.receives;
    return false;
  }

  // Describes a process that has ended or stopped or does not answer, and the operation that needed it.
  std::string ended(CommunicatorRank n, const DumpedEntry& needed) const {
    const InferredRankState& p = waits_.at(n);
    const LaunchedRank* l = job_.launched(n, p.process());
    const bool at_work = p.last.under_way;
    std::string text = words_.ranks({n});
    if (p.stopped())
      text += at_work ? " stands still in " : " stands still ";
    else if (p.silent())
      text += at_work ? " did not answer any more in " : " did not answer any more ";
    else if (p.standing == RankStatus::left && (l == nullptr || !l->failed))
      text += at_work ? " closed the communicator in " : " closed the communicator ";
    else
      text += at_work ? "'s process ended in " : "'s process ended ";
    text += at_work ? where(n, p.last) : words_.after(n.communicator, p.last);
    if (!at_work && needed.under_way && !p.is_in(needed))
      text += fmt::format(" and never came to {}", where(n, needed));
    if (p.stopped()) return text + ": it is stopped by a signal";
    if (l != nullptr && !l->end.empty() && !l->told) text += fmt::format(": it {}", l->end);
    return text;
  }

  std::string around(const std::vector<CommunicatorRank>& circle) const {
    bool points = true;
    for (std::size_t i = 0; i < circle.size(); ++i) {
      const CommunicatorRank n = circle[i], next = circle[(i + 1) % circle.size()];
      const InferredRankState& p = waits_.at(next);
      points = points && waits_.at(n).last.points && waits_.at(n).last.under_way;
      if (waits_.unmatched(n, next) && p.last.under_way && !p.last.points)
        return fmt::format("{} {} {}, which does not {}: it is in {}", words_.ranks({n}),
                           receives_from(n, next.rank) ? "waits to receive from" : "sends to", words_.ranks({next}),
                           receives_from(n, next.rank) ? "send" : "receive", where(next, p.last));
    }
    if (!points) return across(circle);
    return fmt::format("{} wait for each other in a circle, each in {}", words_.ranks(circle),
                       where(circle.front(), waits_.at(circle.front()).last));
  }

  // Describes a circle of ranks in different operations: each operation with the ranks in it, the fewest ranks first.
  std::string across(const std::vector<CommunicatorRank>& circle) const {
    const auto together = [&](CommunicatorRank a, CommunicatorRank b) {
      return a.communicator == b.communicator && waits_.at(a).is_in(waits_.at(b).last);
    };
    std::vector<std::vector<CommunicatorRank>> sides;
    for (const CommunicatorRank& n : waits_.waiting()) {
      if (std::ranges::none_of(circle, [&](CommunicatorRank c) { return together(n, c); })) continue;
      const auto side = std::ranges::find_if(sides, [&](const auto& s) { return together(s.front(), n); });
      if (side == sides.end())
        sides.push_back({n});
      else
        side->push_back(n);
    }
    std::ranges::stable_sort(sides, {}, &std::vector<CommunicatorRank>::size);
    std::vector<std::string> parts;
    for (const auto& side : sides)
      parts.push_back(
          fmt::format("{} {} in {}", words_.ranks(side), is(side), where(side.front(), waits_.at(side.front()).last)));
    return fmt::format("{}, so that they wait for each other", fmt::join(parts, ", where "));
  }

  const JobEvidence& job_;
  const WaitGraph& waits_;
  const Wording& words_;
};

}  // namespace

std::string cause_of(const JobEvidence& job, const WaitGraph& waits, const Wording& words) {
  return Search(job, waits, words).cause();
}

}  // namespace trellis::ccl
