#include "ccl/failure/heartbeat_monitor.h"

#include <algorithm>
#include <utility>

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds most = 5s;          // between heartbeats, even on an overloaded machine
constexpr std::chrono::nanoseconds most_apart = 50ms;  // between two looks
// A waiting rank sleeps for less than this between two looks.
constexpr std::chrono::nanoseconds least_absence = 50ms;

thread_local Deadline looked_at_others = {};

}  // namespace

HeartbeatMonitor::HeartbeatMonitor(std::chrono::nanoseconds timeout)
    : enough_(std::min(timeout / 3, most)),
      absence_(std::max(enough_, least_absence)),
      apart_(std::min(timeout / 64, most_apart)) {}

bool HeartbeatMonitor::Seen::is(const RankActivity& a) const {
  return heartbeats == a.heartbeat + a.heartbeat_elsewhere && operation == a.operation &&
         occupied == a.waits_somewhere();
}

void HeartbeatMonitor::Seen::note_elsewhere(Rank place) {
  const auto end = elsewhere.begin() + static_cast<std::ptrdiff_t>(waited_elsewhere);
  if (place < 0 || std::find(elsewhere.begin(), end, place) != end) return;
  if (waited_elsewhere == elsewhere.size())
    std::rotate(elsewhere.begin(), elsewhere.begin() + 1, elsewhere.end());
  else
    ++waited_elsewhere;
  elsewhere[waited_elsewhere - 1] = place;
}

void HeartbeatMonitor::look(const Transport& t, Deadline now) {
  if (ranks_.empty() || now - looked_ >= apart_) look_now(t, now);
}

void HeartbeatMonitor::look_now(const Transport& t, Deadline now) {
  const bool first = ranks_.empty();
  looked_ = now;
  ranks_.resize(static_cast<std::size_t>(t.ranks()));
  for (Rank r = 0; r < t.ranks(); ++r) {
    Seen& seen = ranks_[static_cast<std::size_t>(r)];
    const RankActivity a = t.activity(r);
    const auto moves = static_cast<std::uint16_t>(a.moves + a.moves_elsewhere);
    if (!first && seen.moves != moves) seen.moved = now;
    seen.moves = moves;
    seen.note_elsewhere(a.elsewhere);
    seen.waits = static_cast<std::uint16_t>(a.waits + a.waits_elsewhere);
    if (first) seen.waits_before = seen.waits;
    if (!first && seen.is(a)) continue;
    seen.heartbeats = a.heartbeat + a.heartbeat_elsewhere;
    seen.operation = a.operation;
    seen.occupied = a.waits_somewhere();
    seen.since = now;
  }
}

void HeartbeatMonitor::data_moved(Deadline now) {
  for (Seen& seen : ranks_) {
    if (seen.occupied) seen.since = now;
    seen.waits_before = seen.waits;
  }
}

void HeartbeatMonitor::excuse(std::chrono::nanoseconds time) {
  for (Seen& seen : ranks_) {
    seen.since += time;
    if (seen.moved != Deadline()) seen.moved += time;
  }
}

std::chrono::nanoseconds HeartbeatMonitor::unchanged(Rank r, Deadline now) const {
  const auto at = static_cast<std::size_t>(r);
  return at < ranks_.size() ? now - ranks_[at].since : std::chrono::nanoseconds(0);
}

bool HeartbeatMonitor::moved(Rank r, Deadline now, std::chrono::nanoseconds time) const {
  const auto at = static_cast<std::size_t>(r);
  return at < ranks_.size() && ranks_[at].moved != Deadline() && now - ranks_[at].moved <= time;
}

int HeartbeatMonitor::calls(Rank r) const {
  const auto at = static_cast<std::size_t>(r);
  constexpr int round = 0x100;  // some transports publish only 8 bits of the counter
  return at < ranks_.size() ? (ranks_[at].waits - ranks_[at].waits_before) & (round - 1) : 0;
}

std::span<const Rank> HeartbeatMonitor::waited_elsewhere(Rank r) const {
  const auto at = static_cast<std::size_t>(r);
  if (at >= ranks_.size()) return {};
  return std::span(ranks_[at].elsewhere).first(ranks_[at].waited_elsewhere);
}

std::chrono::nanoseconds HeartbeatMonitor::longest_absence(const Transport& t, std::uint64_t operation,
                                                           Deadline now) const {
  std::chrono::nanoseconds longest{0};
  for (Rank r = 0; r < static_cast<Rank>(ranks_.size()); ++r) {
    const Seen& seen = ranks_[static_cast<std::size_t>(r)];
    if (r != t.rank() && !seen.occupied && seen.operation < operation) longest = std::max(longest, unchanged(r, now));
  }
  return longest;
}

std::chrono::nanoseconds away_for(Deadline now, std::chrono::nanoseconds least, Deadline waiting_since) {
  const Deadline last = std::max(std::exchange(looked_at_others, now), waiting_since);
  return now - last >= least ? now - last : std::chrono::nanoseconds(0);
}

void looks_now() { looked_at_others = Clock::now(); }

}  // namespace trellis::ccl
