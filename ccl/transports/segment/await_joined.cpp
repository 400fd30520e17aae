#include "ccl/transports/segment/await_joined.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

namespace trellis::ccl {
namespace {

constexpr std::uint32_t yields = 200;

void check_in_time(std::span<const Rank> missing, const JoinOptions& j, const Segment& segment,
                   PeerMemoryAccess& reach) {
  if (Clock::now() > j.deadline)
    throw PeerLost(missing.front(), -1, fmt::format("rank {} did not join in time", missing.front()));
  // Rank 0 may also have ended after it had seen all ranks join: then none is missing.
  if (!reach.alive(0) && !segment.missing().empty()) throw PeerLost(0, -1, "rank 0 died while the ranks joined");
}

}  // namespace

void join_all(const Segment& segment, const JoinOptions& j, PeerMemoryAccess& reach) {
  segment.area(j.rank).pid.store(getpid(), std::memory_order_release);
  for (std::uint32_t turn = 0;; ++turn) {
    const std::vector<Rank> missing = segment.missing();
    const JoinOutcome outcome =
        missing.empty() ? segment.settle(JoinOutcome::made) : segment.header().outcome.load(std::memory_order_acquire);
    if (outcome == JoinOutcome::made) return;
    if (outcome == JoinOutcome::dropped && !j.waiting && !missing.empty())
      throw PeerLost(missing.front(), -1,
                     fmt::format("rank {} did not join in time, as another rank found", missing.front()));
    if (outcome == JoinOutcome::dropped) throw JoinAborted("another rank has given up joining");
    if (turn < yields)
      sched_yield();
    else
      usleep(200);
    try {
      if (j.waiting)
        j.waiting(missing);
      else
        check_in_time(missing, j, segment, reach);
    } catch (...) {
      if (segment.settle(JoinOutcome::dropped) == JoinOutcome::made) return;
      throw;
    }
  }
}

}  // namespace trellis::ccl
