#include "ccl/transports/libfabric/presence/oversubscription.h"

#include <algorithm>
#include <limits>
#include <set>
#include <system_error>

#include "ccl/transports/libfabric/presence/roster.h"
#include "kernels/dispatch/cpu_quota.h"
#include "kernels/dispatch/sysfs_topology.h"

namespace trellis::ccl::libfabric {
namespace {

std::vector<int> threads_of(int process) {
  try {
    return kernels::affinity(process);
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace

bool outnumber_cores(const std::vector<std::vector<int>>& of_ranks, double quota) {
  const bool all_told = std::ranges::none_of(of_ranks, [](const auto& threads) { return threads.empty(); });
  std::set<int> all;
  for (const std::vector<int>& threads : of_ranks) all.insert(threads.begin(), threads.end());
  const int cores = all_told ? static_cast<int>(all.size()) : std::numeric_limits<int>::max();
  return static_cast<int>(of_ranks.size()) > kernels::within_quota(cores, quota);
}

bool ranks_outnumber_cores(const Roster& roster) {
  std::vector<std::vector<int>> here;
  for (Rank r = 0; r < roster.ranks(); ++r)
    if (roster.here(r)) here.push_back(threads_of(static_cast<int>(roster.member(r).process)));
  return outnumber_cores(here, kernels::quota_here());
}

}  // namespace trellis::ccl::libfabric
