#include "ccl/blame.h"

#include <fmt/format.h>

#include <thread>
#include <vector>

#include "ccl/points.h"
#include "kernels/reduce.h"
#include "schedule/collective.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using schedule::Collective;

constexpr auto sure = 200ms;  // by then a rank that is alive shows what it is in
constexpr auto beats = 1s;    // a rank that waits shows a new heartbeat within this, on a crowded machine too

bool fits(const Activity& a, const Activity& b) {
  return a.collective == b.collective && a.type == b.type && a.wire == b.wire && a.reduction == b.reduction &&
         a.root == b.root && a.count == b.count;
}

// Whether two that are counted alike are in what is not the same.
bool differ(const Activity& a, const Activity& b) { return a.operation == b.operation && !fits(a, b); }

// Sends and receives are not.
bool counted(const Activity& a) {
  return a.operation != 0 && static_cast<Collective>(a.collective) != Collective::send_recv;
}

// Two ranks that have called something else.
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
  const auto sent = type_of_mark(m.mark), due = type_of_mark(m.mark_due);
  if (sent && due && sent != due)
    return {m.sender, fmt::format("rank {} sends {} where rank {} receives {}", m.sender, kernels::name(*sent),
                                  t.rank(), kernels::name(*due))};
  return {m.sender, fmt::format("rank {} sends {}{} bytes where rank {} receives {}", m.sender,
                                m.whole ? "" : "more than ", m.bytes, t.rank(), m.due)};
}

[[noreturn]] void lose(Transport& t, Rank r, const Activity& mine, const std::string& why) {
  t.mark_lost(r);
  const Rank first = t.lost();
  if (first == t.rank())
    throw PeerLost(first, mine.step,
                   fmt::format("rank {}, this one, was given up by another that waited for it; we "
                               "were in {}, step {}",
                               first, text_of(mine), mine.step));
  if (first != r)
    throw PeerLost(
        first, mine.step,
        fmt::format("rank {} is lost, as another rank found; we were in {}, step {}", first, text_of(mine), mine.step));
  throw PeerLost(r, mine.step, fmt::format("rank {} {}; we wait in {}, step {}", r, why, text_of(mine), mine.step));
}

[[noreturn]] void throw_aborted(const Activity& mine) {
  throw Aborted(fmt::format("the communicator was aborted while we were in {}", text_of(mine)));
}

// The rank that all this waiting comes down to: the one we wait for if it is in nothing, else one that stands still in
// an operation, else one that has not come so far as we are. A rank may wait for several others and shows one of them,
// so going from one to the next would not lead there.
Rank culprit_of(const Transport& t, const Activity& mine, const std::vector<Activity>& before) {
  if (mine.waits_for < 0) return t.rank();
  if (!t.activity(mine.waits_for).running) return mine.waits_for;
  Rank behind = mine.waits_for;
  for (Rank r = 0; r < t.ranks(); ++r) {
    const Activity now = t.activity(r);
    if (r == t.rank()) continue;
    if (now.running && now.heartbeat == before[static_cast<std::size_t>(r)].heartbeat) return r;
    if (!now.running && now.operation < t.activity(behind).operation) behind = r;
  }
  return behind;
}

// Ranks of which each waits for the next, and the last for the first, which is this one. Empty: there are none.
std::vector<Rank> circle_of(const Transport& t, const std::vector<Activity>& before) {
  std::vector<Rank> circle = {t.rank()};
  for (Rank r = t.activity(t.rank()).waits_for; r != t.rank(); r = t.activity(r).waits_for) {
    if (r < 0 || circle.size() == before.size()) return {};
    const Activity now = t.activity(r);
    if (!now.running || now.heartbeat == before[static_cast<std::size_t>(r)].heartbeat) return {};
    circle.push_back(r);
  }
  return circle;
}

}  // namespace

std::string text_of(const Activity& a) {
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

void explain(const Transport& t, const Activity& mine, const Misfit& m) {
  if (static_cast<Collective>(mine.collective) == Collective::send_recv) throw misfit_of_points(t, m);
  const Mismatch other = difference(t, mine, m.sender);
  if (!m.whole || m.bytes == m.due) throw other;
  throw Mismatch(m.sender, fmt::format("{}; its message has {} bytes where {} are due", other.what(), m.bytes, m.due));
}

void explain(Transport& t, const Activity& mine, const Withdrawn& w) {
  if (t.aborted()) throw_aborted(mine);
  const Rank lost = t.lost();
  lose(t, lost >= 0 ? lost : w.sender, mine, "failed before its message was read");
}

void check_well(Transport& t, const Activity& mine, std::chrono::nanoseconds waited) {
  if (t.aborted()) throw_aborted(mine);
  if (const Rank lost = t.lost(); lost >= 0) lose(t, lost, mine, "is lost");
  for (Rank r = 0; r < t.ranks(); ++r) {
    if (r == t.rank() || t.alive(r)) continue;
    if (t.could_advance()) return;  // what it sent before it went has come meanwhile
    const Activity theirs = t.activity(r);
    if (theirs.running) lose(t, r, mine, "died");
    // It went between operations. Whoever has come as far as we are is through with this one, and what it sent is on
    // its way; it is missed when we still wait for that very rank after a while.
    if (waited < sure || (theirs.operation >= mine.operation && r != mine.waits_for)) continue;
    lose(t, r, mine, t.left(r) ? "has closed the communicator" : "is gone: its process has ended");
  }
  if (waited < sure || mine.waits_for < 0) return;
  const Activity theirs = t.activity(mine.waits_for);
  if (!counted(mine) || !counted(theirs)) return;
  if (theirs.running && differ(mine, theirs)) throw difference(t, mine, mine.waits_for);
}

void check_over(const Transport& t, const Activity& mine) {
  for (Rank r = 0; r < t.ranks(); ++r) {
    const Activity theirs = t.activity(r);
    if (r != t.rank() && counted(theirs) && counted(mine) && differ(mine, theirs)) throw difference(t, mine, r);
  }
  if (const Rank r = t.unread(); r >= 0)
    throw Mismatch(r, fmt::format("rank {} sent something that rank {} never received: rank {} is in {}, rank {} in {}",
                                  r, t.rank(), r, text_of(t.activity(r)), t.rank(), text_of(mine)));
}

PeerLost missed(const Transport& t, const PeerLost& lost, std::string_view meeting) {
  if (t.left(lost.rank))
    return {lost.rank, lost.step, fmt::format("{}: rank {} has closed the communicator", meeting, lost.rank)};
  const Activity theirs = t.activity(lost.rank);
  return {lost.rank, lost.step,
          fmt::format("{}: {}; {} {}", meeting, lost.what(), theirs.running ? "it is in" : "its last was",
                      text_of(theirs))};
}

void give_up(Transport& t, Activity& mine, std::chrono::milliseconds timeout) {
  std::vector<Activity> before;
  for (Rank r = 0; r < t.ranks(); ++r) before.push_back(t.activity(r));
  const auto until = Clock::now() + beats;
  Rank culprit = t.rank();
  do {
    std::this_thread::sleep_for(5ms);
    ++mine.heartbeat;
    t.show(mine);  // the others may be looking at us
    check_well(t, mine, timeout);
    culprit = culprit_of(t, mine, before);
  } while (Clock::now() < until && t.activity(culprit).running);
  const Activity theirs = t.activity(culprit);
  const double seconds = std::chrono::duration<double>(timeout).count();
  std::string why = fmt::format("did not move on within {} s: it is in {}", seconds, text_of(theirs));
  if (theirs.operation < mine.operation || (theirs.operation == mine.operation && !theirs.running))
    why = fmt::format("did not come within {} s: its last was {}", seconds, text_of(theirs));
  if (const std::vector<Rank> circle = circle_of(t, before); !circle.empty() && theirs.running)
    why = fmt::format("did not move on within {} s: ranks {} wait for each other in a circle", seconds,
                      fmt::join(circle, ", "));
  lose(t, culprit, mine, why);
}

}  // namespace trellis::ccl
