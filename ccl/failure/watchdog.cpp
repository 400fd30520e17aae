#include "ccl/failure/watchdog.h"

#include <algorithm>

namespace trellis::ccl {
namespace {

constexpr std::chrono::nanoseconds most = std::chrono::seconds(1);  // between heartbeats, even on an overloaded machine

}  // namespace

Watchdog::Watchdog(std::chrono::nanoseconds timeout) : enough_(std::min(timeout / 4, most)) {}

void Watchdog::look(const Transport& t) {
  const Deadline now = Clock::now();
  const bool first = ranks_.empty();
  ranks_.resize(static_cast<std::size_t>(t.ranks()));
  for (Rank r = 0; r < t.ranks(); ++r) {
    Seen& seen = ranks_[static_cast<std::size_t>(r)];
    const std::uint64_t heartbeat = t.activity(r).heartbeat;
    if (first || heartbeat != seen.heartbeat) seen = {heartbeat, now};
  }
}

Rank Watchdog::stillest(const Transport& t, std::span<const Rank> ranks) const {
  if (ranks_.empty()) return -1;
  Rank found = -1;
  Deadline since = Clock::now() - enough_;
  for (const Rank r : ranks) {
    const Seen& seen = ranks_[static_cast<std::size_t>(r)];
    const Activity now = t.activity(r);
    if (r == t.rank() || !now.running || now.heartbeat != seen.heartbeat || seen.since > since) continue;
    found = r;
    since = seen.since;
  }
  return found;
}

}  // namespace trellis::ccl
