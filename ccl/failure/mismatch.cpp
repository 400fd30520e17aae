#include "ccl/failure/mismatch.h"

#include <fmt/format.h>

#include <optional>

#include "ccl/failure/blame.h"
#include "ccl/failure/flight_recorder.h"
#include "ccl/plan/message_mark.h"
#include "ccl/plan/point_to_point.h"
#include "ccl/transports/membership_notice.h"
#include "ccl/transports/segment/all_to_all_exchange.h"
#include "kernels/reduce/reduce.h"
#include "schedule/collective_traits.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using schedule::Collective;

constexpr auto prompt = 200ms;  // for the answer of a live rank
constexpr auto patience = 2s;   // for the answer of a busy rank, when there is no hurry

// The blocks of this call have a size for each pair of ranks, so its ranks may name different counts.
bool counts_by_pair(const RankActivity& a) { return schedule::counts_by_pair(static_cast<Collective>(a.collective)); }

bool fits(const RankActivity& a, const RankActivity& b) {
  return a.collective == b.collective && a.type == b.type && a.wire == b.wire && a.reduction == b.reduction &&
         a.root == b.root && (a.count == b.count || counts_by_pair(a));
}

// Whether two operations with the same number are different calls.
bool differ(const RankActivity& a, const RankActivity& b) {
  return counted(a) && counted(b) && a.operation == b.operation && !fits(a, b);
}

Mismatch called(Rank other, const RankActivity& theirs, Rank rank, const RankActivity& mine) {
  return {other, fmt::format("rank {} called {} where rank {} called {}", other, text_of(theirs), rank, text_of(mine))};
}

// This rank's call with that operation number; none: the recorder no longer has it.
std::optional<RankActivity> call_of(const FlightRecorder& past, const RankActivity& mine, std::uint64_t operation) {
  if (counted(mine) && mine.operation == operation) return mine;
  const std::optional<FlightRecorderEntry> r = past.collective(operation);
  if (!r) return std::nullopt;
  return RankActivity{.operation = operation,
                      .count = r->count,
                      .root = r->root,
                      .collective = static_cast<std::uint8_t>(r->collective),
                      .type = static_cast<std::uint8_t>(r->type),
                      .wire = static_cast<std::uint8_t>(r->type),
                      .reduction = static_cast<std::uint8_t>(r->op)};
}

// Returns the call `a` with the root that gives its messages this mark; none: no root does.
std::optional<RankActivity> with_another_root(RankActivity a, std::uint64_t schedule, std::uint32_t mark, Rank ranks) {
  Call call{.operation = {.collective = static_cast<Collective>(a.collective)},
            .count = a.count,
            .type = static_cast<kernels::DType>(a.type),
            .op = {static_cast<kernels::Reduction>(a.reduction)}};
  if (!schedule::rooted(call.operation.collective)) return std::nullopt;
  for (a.root = 0; a.root < ranks; ++a.root) {
    call.operation.root = a.root;
    const std::uint64_t of_call = mark_of_call(call, static_cast<kernels::DType>(a.wire), schedule);
    if (mark_of(of_call, a.operation, false) == mark) return a;
  }
  return std::nullopt;
}

// The difference between this rank's call and that of an unexpected message. If it is not found between this rank and
// the sender, all ranks are compared: the sender may have gone on and sent the message in a later operation, while the
// ranks whose calls differ wait for each other.
Mismatch difference(const Transport& t, const FlightRecorder& past, const RankActivity& mine, Rank other,
                    std::uint32_t mark) {
  const RankActivity theirs = t.activity(other);
  if (const auto own = call_of(past, mine, operation_of(mark, mine.operation))) {
    if (differ(*own, theirs)) return called(other, theirs, t.rank(), *own);
    const std::optional<FlightRecorderEntry> recorded = past.collective(own->operation);
    if (const auto sent = with_another_root(*own, recorded ? recorded->schedule : 0, mark, t.ranks()))
      return called(other, *sent, t.rank(), *own);
  }
  for (Rank r = 0; r < t.ranks(); ++r)
    if (const RankActivity a = t.activity(r); r != t.rank() && differ(mine, a)) return called(r, a, t.rank(), mine);
  return {other, fmt::format("rank {} sent what rank {} does not expect: an earlier call of theirs was different, or "
                             "their settings are; rank {} is in {}, rank {} in {}",
                             other, t.rank(), other, text_of(theirs), t.rank(), text_of(mine))};
}

// The same for a message whose size may be what differs. Where each pair of ranks has a size, the mark has none.
Mismatch difference(const Transport& t, const FlightRecorder& past, const RankActivity& mine,
                    const MessageMismatch& m) {
  if (const RankActivity theirs = t.activity(m.sender);
      counts_by_pair(mine) && m.mark == m.mark_due && theirs.operation == mine.operation)
    return called(m.sender, theirs, t.rank(), mine);
  return difference(t, past, mine, m.sender, m.mark);
}

Mismatch misfit_of_points(const Transport& t, const MessageMismatch& m) {
  const auto sent = type_of_hash(m.mark), due = type_of_hash(m.mark_due);
  if (sent && due && sent != due)
    return {m.sender, fmt::format("rank {} sends {} where rank {} receives {}", m.sender, kernels::name(*sent),
                                  t.rank(), kernels::name(*due))};
  return {m.sender, fmt::format("rank {} sends {}{} bytes where rank {} receives {}", m.sender,
                                m.whole ? "" : "more than ", m.bytes, t.rank(), m.due)};
}

// Whether a message with this mark belongs to none of the operations after `ended`, as far as the mark tells.
bool is_past(std::uint32_t mark, std::uint64_t ended) { return operation_of(mark, ended) <= ended; }

enum class Path : std::uint8_t { lane, points, round };  // `points`: the lane of send and recv

// Calls f with each message that has arrived and was not received: its sender, its mark, and how it came.
template <class Function>
void for_each_unread(const Transport& t, Function&& f) {
  const int points = t.lanes() - 1;
  for (Rank from = 0; from < t.ranks(); ++from) {
    for (int lane = 0; lane < t.lanes(); ++lane)
      if (const auto mark = t.unread(from, lane)) f(from, *mark, lane == points ? Path::points : Path::lane);
    if (const AllToAllExchange* const rounds = t.rounds())
      if (const auto mark = rounds->unread(from)) f(from, *mark, Path::round);
  }
}

// Throws Mismatch if an unread message over a lane is of an earlier operation: it tells which calls differed, a round's
// mark only that some did. Its sender may be gone: it may have found the difference before.
void tell_of_unread(const Transport& t, const FlightRecorder& past, const RankActivity& mine) {
  const std::uint64_t ended = mine.operation - 1;
  for_each_unread(t, [&](Rank from, std::uint32_t mark, Path by) {
    const bool is_of_earlier = by == Path::lane && is_past(mark, ended);
    if (is_of_earlier && t.activity(from).operation <= ended + operations_told_apart)
      throw difference(t, past, mine, from, mark);
  });
}

}  // namespace

std::string text_of(const RankActivity& a) {
  if (a.divides != 0)
    return fmt::format("a {} after operation {}", word(static_cast<MembershipNotice::Call>(a.divides)), a.operation);
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

bool counted(const RankActivity& a) {
  return a.operation != 0 && static_cast<Collective>(a.collective) != Collective::send_recv;
}

void check_same_call(const Transport& t, const RankActivity& mine, Rank other) {
  if (const RankActivity theirs = t.activity(other); differ(mine, theirs)) throw called(other, theirs, t.rank(), mine);
}

// The mark of an operation far ahead looks like that of an earlier one, so the sender's published operation number
// decides.
void check_unread(Transport& t, const FlightRecorder& past, const RankActivity& mine, std::uint64_t ended) {
  for_each_unread(t, [&](Rank from, std::uint32_t mark, Path by) {
    if (by == Path::points || !is_past(mark, ended) || !t.answers(from, prompt) || t.left(from)) return;
    if (t.activity(from).operation <= ended + operations_told_apart) throw difference(t, past, mine, from, mark);
  });
}

void check_paths(const Transport& t, const FlightRecorder& past, const RankActivity& mine, bool in_rounds) {
  for_each_unread(t, [&](Rank from, std::uint32_t mark, Path by) {
    if (by == Path::points || (by == Path::round) == in_rounds) return;
    if (operation_of(mark, mine.operation) != mine.operation) return;
    if (by == Path::round) tell_of_unread(t, past, mine);
    throw difference(t, past, mine, from, mark);
  });
}

void check_over(Transport& t, const FlightRecorder& past, const RankActivity& mine) {
  t.refresh(patience);
  if (t.aborted()) std::rethrow_exception(ended_by(t));
  for (Rank r = 0; r < t.ranks(); ++r)
    if (r != t.rank()) check_same_call(t, mine, r);
  static_cast<void>(t.could_advance());  // takes in what has arrived
  for_each_unread(t, [&](Rank from, std::uint32_t mark, Path by) {
    const std::string theirs = text_of(t.activity(from));
    if (by == Path::points)
      throw Mismatch(from, fmt::format("rank {} sent something that rank {} never received: rank {} is in {}, rank {} "
                                       "in {}",
                                       from, t.rank(), from, theirs, t.rank(), text_of(mine)));
    if (is_past(mark, mine.operation)) throw difference(t, past, mine, from, mark);
    throw Mismatch(from, fmt::format("rank {} called {} where rank {}, whose last was {}, finalized the communicator",
                                     from, theirs, t.rank(), text_of(mine)));
  });
}

void explain(Transport& t, const FlightRecorder& past, const RankActivity& mine, const MessageMismatch& m) {
  t.refresh(patience);
  if (static_cast<Collective>(mine.collective) == Collective::send_recv) throw misfit_of_points(t, m);
  if (m.in_round) tell_of_unread(t, past, mine);
  const Mismatch other = difference(t, past, mine, m);
  const bool too_long = !m.whole && m.bytes >= m.due;
  if (!too_long && (!m.whole || m.bytes == m.due)) throw other;
  throw Mismatch(m.sender, fmt::format("{}; its message has {}{} bytes where {} are due", other.what(),
                                       too_long ? "more than " : "", m.bytes, m.due));
}

}  // namespace trellis::ccl
