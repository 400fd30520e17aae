#include "ccl/transports/libfabric/presence/crowding.h"

#include <sched.h>

#include <cstring>

#include "ccl/transports/libfabric/presence/presence.h"

namespace trellis::ccl::libfabric {

bool ranks_outnumber_cores(const Presence& p) {
  cpu_set_t all, one;
  CPU_ZERO(&all);
  int here = 0;
  for (Rank r = 0; r < p.ranks(); ++r) {
    const Member& m = p.member(r);
    if (m.home != p.member(p.rank()).home) continue;
    ++here;
    // Where it is not told, no core is known to be shared.
    if (sched_getaffinity(static_cast<pid_t>(m.process), sizeof one, &one) != 0) std::memset(&one, 0xFF, sizeof one);
    CPU_OR(&all, &all, &one);
  }
  return here > CPU_COUNT(&all);
}

}  // namespace trellis::ccl::libfabric
