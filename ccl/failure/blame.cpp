#include "ccl/failure/blame.h"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "ccl/interruption.h"
#include "ccl/plan/point_to_point.h"
#include "ccl/transports/notice.h"
#include "ccl/transports/who.h"
#include "kernels/reduce/reduce.h"
#include "schedule/collective.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using schedule::Collective;

constexpr auto sure = 200ms;   // enough for a live rank to publish its activity
constexpr auto patience = 2s;  // for the answer of a rank that has much else to do, where nothing hurries

std::vector<Rank> all_of(const Transport& t) {
  std::vector<Rank> ranks(static_cast<std::size_t>(t.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

bool fits(const Activity& a, const Activity& b) {
  return a.collective == b.collective && a.type == b.type && a.wire == b.wire && a.reduction == b.reduction &&
         a.root == b.root && a.count == b.count;
}

// Whether two operations with the same number are different calls.
bool differ(const Activity& a, const Activity& b) { return a.operation == b.operation && !fits(a, b); }

// Collectives are numbered; sends and receives are not.
bool counted(const Activity& a) {
  return a.operation != 0 && static_cast<Collective>(a.collective) != Collective::send_recv;
}

// Two ranks have made different calls.
Mismatch difference(const Transport& t, const Activity& mine, Rank other) {
  const Activity theirs = t.activity(other);
  if (differ(mine, theirs))
    return {other,
            fmt::format("rank {} called {} where rank {} called {}", other, text_of(theirs), t.rank(), text_of(mine))};
  return {other, fmt::format("rank {} sent what rank {} does not expect: an earlier call of theirs was different, or "
                             "their settings are; rank {} is in {}, rank {} in {}",
                             other, t.rank(), other, text_of(theirs), t.rank(), text_of(mine))};
}

Mismatch misfit_of_points(const Transport& t, const Misfit& m) {
  const auto sent = type_of_hash(m.mark), due = type_of_hash(m.mark_due);
  if (sent && due && sent != due)
    return {m.sender, fmt::format("rank {} sends {} where rank {} receives {}", m.sender, kernels::name(*sent),
                                  t.rank(), kernels::name(*due))};
  return {m.sender, fmt::format("rank {} sends {}{} bytes where rank {} receives {}", m.sender,
                                m.whole ? "" : "more than ", m.bytes, t.rank(), m.due)};
}

[[noreturn]] void lose(Transport& t, Rank r, const Activity& mine, const std::string& why) {
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

[[noreturn]] void throw_aborted(const Transport& t, const Activity& mine) {
  const Aborted aborted = aborted_by(t);
  throw Aborted(fmt::format("{} while we were in {}", aborted.what(), text_of(mine)), aborted.by);
}

// Follows "waits for" from `first`. Returns the rank at the end that is in no operation; in a cycle, the start.
Rank end_of_chain(const Transport& t, Rank first) {
  Rank at = first;
  for (Rank hops = 0; hops < t.ranks() && at >= 0 && at < t.ranks() && at != t.rank(); ++hops) {
    const Activity theirs = t.activity(at);
    if (!theirs.running) return at;
    at = theirs.waits_for;
  }
  return first;
}

// The rank that is the root cause of the waiting: the one that we wait for if it is in no operation; else one that has
// stopped in an operation; else one that is behind this rank. Following the chain of waits comes last, since a rank may
// wait for several others and shows only one.
Rank culprit_of(const Transport& t, const Activity& mine, const Watchdog& watch) {
  if (mine.waits_for < 0) return t.rank();
  if (!t.activity(mine.waits_for).running) return mine.waits_for;
  if (const Rank still = watch.stillest(t, all_of(t)); still >= 0) return still;
  Rank behind = mine.waits_for;
  for (const Rank r : all_of(t)) {
    const Activity now = t.activity(r);
    if (r != t.rank() && !now.running && now.operation < t.activity(behind).operation) behind = r;
  }
  return behind == mine.waits_for ? end_of_chain(t, behind) : behind;
}

// A cycle of ranks in which each waits for the next, starting with this one. Empty: there is no cycle.
std::vector<Rank> circle_of(const Transport& t, const Watchdog& watch) {
  // A collective's schedule is proved free of deadlock, and each rank shows only one of the ranks that it waits for.
  if (static_cast<Collective>(t.activity(t.rank()).collective) != Collective::send_recv) return {};
  if (watch.stillest(t, all_of(t)) >= 0) return {};
  std::vector<Rank> circle = {t.rank()};
  for (Rank r = t.activity(t.rank()).waits_for; r != t.rank(); r = t.activity(r).waits_for) {
    if (r < 0 || circle.size() == static_cast<std::size_t>(t.ranks()) || !t.activity(r).running) return {};
    circle.push_back(r);
  }
  return circle;
}

// A split that this rank has not reached, and that comes before the operation that it is in.
bool divides_instead(const Transport& t, const Activity& mine, Rank other) {
  const Activity theirs = t.activity(other);
  if (!theirs.running || static_cast<Notice::Call>(theirs.divides) != Notice::Call::split) return false;
  const auto attempt = [&](Rank r) { return notice_in(t.posted(r), t.ranks()).attempt; };
  return theirs.operation < mine.operation && attempt(other) > attempt(t.rank());
}

}  // namespace

std::string text_of(const Activity& a) {
  if (a.divides != 0)
    return fmt::format("a {} after operation {}", word(static_cast<Notice::Call>(a.divides)), a.operation);
  const auto collective = static_cast<Collective>(a.collective);
  if (collective == Collective::send_recv) return fmt::format("sends and receives after operation {}", a.operation);
  if (a.operation == 0) return "no operation yet";
  if (collective == Collective::barrier) return fmt::format("operation {}, barrier", a.operation);
  std::string text = fmt::format("operation {}, {} of {} {}", a.operation, schedule::name(collective), a.count,
                                 kernels::name(static_cast<kernels::DType>(a.type)));
  if (a.wire != a.type) text += fmt::format(" as {}", kernels::name(static_cast<kernels::DType>(a.wire)));
  if (schedule::reduces(collective))
    text += fmt::format(", {}", kernels::name(static_cast<kernels::Reduction>(a.reduction)));
  if (schedule::rooted(collective)) text += fmt::format(", root {}", a.root);
  return text;
}

void explain(Transport& t, const Activity& mine, const Misfit& m) {
  t.refresh(patience);
  if (static_cast<Collective>(mine.collective) == Collective::send_recv) throw misfit_of_points(t, m);
  const Mismatch other = difference(t, mine, m.sender);
  if (!m.whole || m.bytes == m.due) throw other;
  throw Mismatch(m.sender, fmt::format("{}; its message has {} bytes where {} are due", other.what(), m.bytes, m.due));
}

void explain(Transport& t, const Activity& mine, const Withdrawn& w) {
  t.refresh(patience);
  if (t.aborted()) throw_aborted(t, mine);
  const Rank lost = t.lost();
  lose(t, lost >= 0 ? lost : w.sender, mine, "failed before its message was read");
}

void check_health(Transport& t, const Activity& mine, std::chrono::nanoseconds waited) {
  if (t.aborted()) throw_aborted(t, mine);
  if (const Rank lost = t.lost(); lost >= 0) lose(t, lost, mine, "is lost");
  for (Rank r = 0; r < t.ranks(); ++r) {
    if (r == t.rank() || t.alive(r)) continue;
    if (t.could_advance()) return;  // what it sent before it left has arrived meanwhile
    const Activity theirs = t.activity(r);
    if (t.silence(r) > 0ms && t.cut_off())
      lose(t, t.rank(), mine, "is cut off: most of the others do not answer, among them " + who(t, r));
    if (theirs.running) lose(t, r, mine, how_it_went(t, r));
    // It left between operations. If it has come as far as this rank, it has finished this operation, and its messages
    // are on their way. It is lost if this rank still waits for it after a while.
    if (waited < sure || (theirs.operation >= mine.operation && r != mine.waits_for)) continue;
    lose(t, r, mine, how_it_went(t, r));
  }
  if (waited < sure || mine.waits_for < 0) return;
  const Activity theirs = t.activity(mine.waits_for);
  if (counted(mine) && divides_instead(t, mine, mine.waits_for))
    throw Mismatch(mine.waits_for, fmt::format("rank {} called {} where rank {} called {}", mine.waits_for,
                                               text_of(theirs), t.rank(), text_of(mine)));
  if (!counted(mine) || !counted(theirs)) return;
  if (differ(mine, theirs)) throw difference(t, mine, mine.waits_for);
}

void heed_interruption(Transport& t, const Activity& mine) {
  if (!interrupted()) return;
  t.mark_aborted();
  throw Aborted(fmt::format("it was interrupted on this rank, in {}", text_of(mine)), t.rank());
}

void check_over(Transport& t, const Activity& mine) {
  t.refresh(patience);
  for (Rank r = 0; r < t.ranks(); ++r) {
    const Activity theirs = t.activity(r);
    if (r != t.rank() && counted(theirs) && counted(mine) && differ(mine, theirs)) throw difference(t, mine, r);
  }
  if (const Rank r = t.unread(); r >= 0)
    throw Mismatch(r, fmt::format("rank {} sent something that rank {} never received: rank {} is in {}, rank {} in {}",
                                  r, t.rank(), r, text_of(t.activity(r)), t.rank(), text_of(mine)));
}

PeerLost lost_before(const Transport& t) {
  const Rank r = t.lost();
  const std::string last = text_of(t.activity(t.rank()));
  if (r == t.rank())
    return {r, -1,
            fmt::format("{}, this one, was given up by another that waited for it; our last was {}", who(t, r), last)};
  return {r, -1, fmt::format("{} is lost, as another rank found; our last was {}", who(t, r), last)};
}

Aborted aborted_by(const Transport& t) {
  const Rank r = t.aborted_by();
  return Aborted(fmt::format("the communicator was aborted by rank {}{}", r, r == t.rank() ? ", this one" : ""), r);
}

void give_up(Transport& t, const Activity& mine, std::chrono::milliseconds timeout, const Watchdog& watch) {
  t.refresh(sure);
  check_health(t, mine, timeout);
  const Rank culprit = culprit_of(t, mine, watch);
  const Activity theirs = t.activity(culprit);
  const double seconds = std::chrono::duration<double>(timeout).count();
  std::string why = fmt::format("did not move on within {} s: it is in {}", seconds, text_of(theirs));
  if (theirs.operation < mine.operation || (theirs.operation == mine.operation && !theirs.running))
    why = fmt::format("did not come within {} s: {} {}", seconds, theirs.running ? "it is in" : "its last was",
                      text_of(theirs));
  if (const std::vector<Rank> circle = circle_of(t, watch); !circle.empty() && theirs.running)
    why = fmt::format("did not move on within {} s: ranks {} wait for each other in a circle", seconds,
                      fmt::join(circle, ", "));
  lose(t, culprit, mine, why);
}

}  // namespace trellis::ccl
