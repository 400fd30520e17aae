#include "ccl/failure/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "ccl/failure/end_for_all.h"
#include "ccl/failure/mismatch.h"
#include "ccl/interruption.h"
#include "ccl/transports/describe_rank.h"
#include "ccl/transports/membership_notice.h"
#include "kernels/reduce/reduce.h"
#include "schedule/collective.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using schedule::Collective;

constexpr auto sure = 200ms;               // enough for a live rank to publish its activity
constexpr int most_calls_waited_for = 16;  // other calls that a rank may wait in before the awaited one
constexpr auto patience = 2s;              // for the answer of a busy rank, when there is no hurry

[[noreturn]] void lose(Transport& t, Rank r, const RankActivity& mine, const std::string& why) {
  t.mark_lost(r);
  const Rank first = t.lost();
  if (first == t.rank() && first == r)
    throw PeerLost(r, mine.step,
                   fmt::format("{}, this one, {}; we wait in {}, step {}", who(t, r), why, text_of(mine), mine.step));
  if (first == t.rank())
    throw PeerLost(first, mine.step,
                   fmt::format("{}, this one, was given up by another that waited for it; we were in {}, step {}",
                               who(t, first), text_of(mine), mine.step));
  if (first != r)
    throw PeerLost(first, mine.step,
                   fmt::format("{} is lost, as another rank found; we were in {}, step {}", who(t, first),
                               text_of(mine), mine.step));
  throw PeerLost(r, mine.step, fmt::format("{} {}; we wait in {}, step {}", who(t, r), why, text_of(mine), mine.step));
}

std::string why_lost(const Transport& t) {
  const Rank heard = t.heard_by_others();
  return heard < 0 ? "is lost" : fmt::format("is lost: it does not hear {}, which others hear", who(t, heard));
}

[[noreturn]] void throw_ended(const Transport& t, const RankActivity& mine) {
  try {
    std::rethrow_exception(ended_by(t));
  } catch (const Aborted& e) {
    throw Aborted(fmt::format("{} while we were in {}", e.what(), text_of(mine)), e.by);
  } catch (const PeerLost& e) {
    throw PeerLost(e.rank, mine.step, fmt::format("{}; we were in {}, step {}", e.what(), text_of(mine), mine.step));
  }
}

// The ranks that have not yet finished the collective that this rank is in.
std::vector<Rank> unfinished(const Transport& t, const RankActivity& mine) {
  std::vector<Rank> ranks;
  for (Rank r = 0; r < t.ranks() && counted(mine); ++r) {
    const RankActivity theirs = t.activity(r);
    if (r != t.rank() && (theirs.operation < mine.operation || (theirs.operation == mine.operation && theirs.running)))
      ranks.push_back(r);
  }
  return ranks;
}

// A cycle of ranks in which each waits for the next, starting with this one. Empty: there is no cycle.
std::vector<Rank> circle_of(const Transport& t) {
  // Only sends and receives can deadlock: a collective's schedule is proved free of it. A cycle among its ranks would
  // mean nothing, as a rank that waits for several shows only one of them.
  if (static_cast<Collective>(t.activity(t.rank()).collective) != Collective::send_recv) return {};
  std::vector<Rank> circle = {t.rank()};
  for (Rank r = t.activity(t.rank()).waits_for; r != t.rank(); r = t.activity(r).waits_for) {
    if (r < 0 || circle.size() == static_cast<std::size_t>(t.ranks()) || !t.activity(r).running) return {};
    circle.push_back(r);
  }
  return circle;
}

// Why the culprit keeps this rank waiting, as far as it can be told.
std::string why_of(const RankWait& w, const Culprit& c, const RankActivity& mine, double seconds) {
  const Transport& t = w.transport;
  std::string why = fmt::format("did not move on within {} s", seconds);
  if (c.rank >= 0) {
    const RankActivity theirs = t.activity(c.rank);
    const bool came = theirs.operation > mine.operation || (theirs.operation == mine.operation && theirs.running);
    if (!came) why = fmt::format("did not come within {} s", seconds);
    why += fmt::format(": {} {}", theirs.running ? "it is in" : "its last was", text_of(theirs));
  }
  if (c.rank >= 0 && has_finalized(t, c.rank)) why += "; it has finalized the communicator";
  if (c.how == Culprit::How::stopped) why += "; its process is stopped, by a signal or a debugger";
  if (c.rank != mine.waits_for && mine.waits_for >= 0 && t.activity(mine.waits_for).elsewhere >= 0)
    why += fmt::format("; rank {} waits in another communicator", mine.waits_for);
  return why;
}

// True if data still move for that rank and must come to an end: they belong to an operation that this rank is in or
// has ended, or to a few other calls. Without that limit, a rank that made other calls for ever would keep this one
// waiting.
bool moves_to_an_end(const Transport& t, const HeartbeatMonitor& watch, const RankActivity& mine, Rank r, Deadline now,
                     std::chrono::nanoseconds lately) {
  const RankActivity theirs = t.activity(r);
  const bool of_past = counted(mine) && counted(theirs) && theirs.operation <= mine.operation;
  return watch.moved(r, now, lately) && (of_past || watch.calls(r) <= most_calls_waited_for);
}

// True if the other rank is in a split that this rank has not reached, and that comes before this rank's operation.
bool divides_instead(const Transport& t, const RankActivity& mine, Rank other) {
  const RankActivity theirs = t.activity(other);
  if (!theirs.running || static_cast<MembershipNotice::Call>(theirs.divides) != MembershipNotice::Call::split)
    return false;
  const auto attempt = [&](Rank r) { return notice_in(t.posted(r), t.ranks()).attempt; };
  return theirs.operation < mine.operation && attempt(other) > attempt(t.rank());
}

}  // namespace

void explain(const Transport& t, const RankActivity& mine, const MessageDamaged& d) {
  throw DataCorrupted(d.sender,
                      fmt::format("what {} sent has arrived with other bits: its checksum does not fit; we "
                                  "were in {}, step {}",
                                  d.sender < 0 ? "another rank" : who(t, d.sender), text_of(mine), mine.step));
}

// Waits a moment for the reason: a rank that fails may withdraw its messages before it says why.
void explain(Transport& t, const RankActivity& mine, const MessageWithdrawn& w) {
  t.refresh(patience);
  for (const Deadline end = Clock::now() + sure; !t.over() && Clock::now() < end;) {
    std::this_thread::sleep_for(1ms);
    t.refresh(0ms);
  }
  if (t.aborted()) throw_ended(t, mine);
  const Rank lost = t.lost();
  lose(t, lost >= 0 ? lost : w.sender, mine, "failed before its message was read");
}

void check_health(Transport& t, const FlightRecorder& past, const RankActivity& mine, std::chrono::nanoseconds waited) {
  if (t.aborted()) throw_ended(t, mine);
  if (const Rank lost = t.lost(); lost >= 0) lose(t, lost, mine, why_lost(t));
  for (Rank r = 0; r < t.ranks(); ++r) {
    if (r == t.rank()) continue;
    const bool alive = t.alive(r);
    if (!alive && t.could_advance()) return;  // what it sent before it left has arrived meanwhile
    if (waited >= sure && (alive || t.left(r))) check_same_call(t, mine, r);
    if (alive) continue;
    if (t.aborted()) throw_ended(t, mine);  // that rank aborted it before it left
    const RankActivity theirs = t.activity(r);
    if (t.silence(r) > 0ms && t.cut_off())
      lose(t, t.rank(), mine, "is cut off: most of the others do not answer, among them " + who(t, r));
    if (theirs.running) lose(t, r, mine, how_it_went(t, r));
    // The rank left between operations. If it came as far as this rank, it finished this operation, and its messages
    // are on their way. It is lost if this rank still waits for one of them after a while. A native collective has no
    // messages: it ends on this rank's device at its own time.
    const bool awaits_message = r == mine.waits_for && mine.step >= 0;
    if (waited < sure || (theirs.operation >= mine.operation && !awaits_message)) continue;
    lose(t, r, mine, how_it_went(t, r));
  }
  check_unread(t, past, mine, counted(mine) ? mine.operation - 1 : mine.operation);
  if (waited < sure || mine.waits_for < 0 || !counted(mine)) return;
  if (divides_instead(t, mine, mine.waits_for))
    throw Mismatch(mine.waits_for, fmt::format("rank {} called {} where rank {} called {}", mine.waits_for,
                                               text_of(t.activity(mine.waits_for)), t.rank(), text_of(mine)));
  if (has_finalized(t, mine.waits_for) && t.activity(mine.waits_for).operation < mine.operation)
    lose(t, mine.waits_for, mine, "has finalized the communicator and makes no more calls");
}

void heed_interruption(Transport& t, const RankActivity& mine) {
  if (!interrupted()) return;
  t.mark_aborted();
  throw Aborted(fmt::format("it was interrupted on this rank, in {}", text_of(mine)), t.rank());
}

PeerLost lost_before(const Transport& t) {
  const Rank r = t.lost();
  const std::string last = text_of(t.activity(t.rank()));
  if (r == t.rank())
    return {r, -1,
            fmt::format("{}, this one, was given up by another that waited for it; our last was {}", who(t, r), last)};
  return {r, -1, fmt::format("{} is lost, as another rank found; our last was {}", who(t, r), last)};
}

std::exception_ptr ended_by(const Transport& t) {
  const Rank r = t.aborted_by();
  const MembershipNotice n = notice_in(t.posted(r), t.ranks());
  const std::string by = fmt::format("{}{}", who(t, r), r == t.rank() ? ", this one," : "");
  switch (n.ended) {
    case MembershipNotice::Ended::no:
    case MembershipNotice::Ended::finalized:
      break;
    case MembershipNotice::Ended::failed:
      return std::make_exception_ptr(Aborted(fmt::format("{} has ended the communicator: {}", by, n.reason), r));
    case MembershipNotice::Ended::mismatch:
      return std::make_exception_ptr(Mismatch(r, fmt::format("{}, as {} found", n.reason, by)));
    case MembershipNotice::Ended::lost_outside:
      return std::make_exception_ptr(PeerLost(-1, -1, fmt::format("{}, as {} found", n.reason, by)));
  }
  return std::make_exception_ptr(
      Aborted(fmt::format("the communicator was aborted by rank {}{}", r, r == t.rank() ? ", this one" : ""), r));
}

void give_up(Transport& t, const FlightRecorder& past, const FamilyMember& family, HeartbeatMonitor& watch,
             const RankActivity& mine, std::chrono::milliseconds timeout, std::chrono::nanoseconds waited) {
  t.refresh(sure);
  check_health(t, past, mine, waited);
  const Deadline now = Clock::now();
  watch.look_now(t, now);
  const RankWait wait{t, family, watch};
  const std::vector<Rank> needed = unfinished(t, mine);
  Culprit culprit = culprit_of(wait, mine.waits_for, needed);
  const double seconds = std::chrono::duration<double>(timeout).count();
  looks_now();
  if (waited <= timeout && (culprit.rank < 0 || watch.unchanged(culprit.rank, now) <= timeout)) return;
  if (culprit.how == Culprit::How::none) {
    if (std::ranges::any_of(culprit.waited_for,
                            [&](Rank r) { return moves_to_an_end(t, watch, mine, r, now, timeout); }))
      return;
    if (const std::vector<Rank> circle = circle_of(t); !circle.empty())
      lose(t, mine.waits_for, mine,
           fmt::format("did not move on within {} s: ranks {} wait for each other in a circle", seconds,
                       fmt::join(circle, ", ")));
    if (waited <= timeout + timeout / 2) return;
    culprit.rank = mine.waits_for < 0 ? t.rank() : mine.waits_for;
    // Ranks that wait for each other in different communicators, as after a failure in one of them, are not at fault.
    if (const Rank place = t.activity(culprit.rank).elsewhere; place >= 0)
      throw PeerLost(-1, mine.step,
                     fmt::format("{} did not come within {} s: it waits in another communicator, for {}; we wait in {}",
                                 who(t, culprit.rank), seconds,
                                 name_of(wait, {.rank = family.rank_at(place), .place = place}), text_of(mine)));
  }
  const std::string why = why_of(wait, culprit, mine, seconds);
  if (culprit.rank >= 0) lose(t, culprit.rank, mine, why);
  throw PeerLost(-1, mine.step,
                 fmt::format("{} {}; we wait in {}, step {}", name_of(wait, culprit), why, text_of(mine), mine.step));
}

}  // namespace trellis::ccl
