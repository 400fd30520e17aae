#include "ccl/transports/segment/joining.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

namespace trellis::ccl {
namespace {

constexpr std::uint32_t yields = 200;

void check_in_time(std::span<const Rank> missing, const Joining& j, const Segment& segment, Reach& reach) {
  if (Clock::now() > j.deadline)
    throw PeerLost(missing.front(), -1, fmt::format("rank {} did not join in time", missing.front()));
  // Rank 0 may have seen all ranks join, and left since.
  if (!reach.alive(0) && !segment.missing().empty()) throw PeerLost(0, -1, "rank 0 died while the ranks joined");
}

}  // namespace

void join_all(const Segment& segment, const Joining& j, Reach& reach) {
  segment.area(j.rank).pid.store(getpid(), std::memory_order_release);
  for (std::uint32_t turn = 0;; ++turn) {
    const std::vector<Rank> missing = segment.missing();
    const Outcome outcome =
        missing.empty() ? segment.settle(Outcome::made) : segment.header().outcome.load(std::memory_order_acquire);
    if (outcome == Outcome::made) return;
    if (outcome == Outcome::dropped && !j.waiting && !missing.empty())
      throw PeerLost(missing.front(), -1,
                     fmt::format("rank {} did not join in time, as another rank found", missing.front()));
    if (outcome == Outcome::dropped) throw Dropped("another rank has given up joining");
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
      if (segment.settle(Outcome::dropped) == Outcome::made) return;
      throw;
    }
  }
}

}  // namespace trellis::ccl
