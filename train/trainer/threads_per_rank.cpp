#include "train/trainer/threads_per_rank.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "ccl/rendezvous/this_machine.h"
#include "kernels/dispatch/cpu.h"
#include "kernels/dispatch/cpu_quota.h"
#include "kernels/dispatch/sysfs_topology.h"
#include "kernels/dispatch/thread_team.h"

namespace trellis::train {
namespace {

CoresOfRank cores_here() {
  CoresOfRank mine{.machine = std::hash<std::string>()(ccl::boot_id())};
  mine.grant(kernels::granted_here());
  for (const int thread : kernels::affinity()) mine.add(kernels::place_of(thread).first_of_core);
  return mine;
}

bool has(const CoresOfRank& rank, std::size_t bit) { return (rank.cores[bit / 64] >> bit % 64 & 1) != 0; }

}  // namespace

// No known machine has more than 4096 CPUs. On a larger one, two cores with the same remainder would count as one.
void CoresOfRank::add(int core) {
  const std::size_t bit = static_cast<std::size_t>(core) % (64 * cores.size());
  cores[bit / 64] |= std::uint64_t{1} << bit % 64;
}

void CoresOfRank::grant(const kernels::CgroupCpuQuota& quota) {
  granted = static_cast<std::uint64_t>(kernels::granted(quota));
  group = quota.group;
}

namespace {

// The number of cores that a rank has: one that n ranks share counts 1 / n, and the control group may grant less.
double own_cores(std::span<const CoresOfRank> all, std::size_t rank) {
  const CoresOfRank& mine = all[rank];
  std::vector<const CoresOfRank*> here;
  int within = 0;  // ranks of this rank's control group
  for (const CoresOfRank& other : all) {
    if (other.machine != mine.machine) continue;
    here.push_back(&other);
    within += other.group == mine.group ? 1 : 0;
  }
  double own = 0;
  for (std::size_t bit = 0; bit < 64 * mine.cores.size(); ++bit)
    if (has(mine, bit))
      own +=
          1.0 / static_cast<double>(std::ranges::count_if(here, [&](const auto* other) { return has(*other, bit); }));
  if (mine.granted != 0) own = std::min(own, static_cast<double>(mine.granted) / within);
  constexpr double rounding = 1e-6;  // for sums such as 1/3 + 1/3 + 1/3
  return own + rounding;
}

}  // namespace

int own_threads(std::span<const CoresOfRank> all, std::size_t rank) {
  return std::max(1, static_cast<int>(own_cores(all, rank)));
}

bool has_own_cores(std::span<const CoresOfRank> all, std::size_t rank, int threads) {
  return threads <= own_cores(all, rank);
}

int compute_threads(ccl::Communicator& world, int wanted) {
  const CoresOfRank mine = cores_here();
  std::vector<CoresOfRank> all(static_cast<std::size_t>(world.ranks()));
  world.all_gather(&mine, all.data(), sizeof mine, kernels::DType::u8);
  const auto rank = static_cast<std::size_t>(world.rank());
  const int threads = wanted < 0 ? own_threads(all, rank) : wanted == 0 ? kernels::cpu().cores : wanted;
  using enum kernels::TeamSpinTime;
  kernels::set_team_wait(has_own_cores(all, rank, threads) ? long_time : short_time);
  return threads;
}

}  // namespace trellis::train
