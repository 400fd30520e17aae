#include "kernels/dispatch/cpu_quota.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "kernels/types/fnv1a.h"

namespace trellis::kernels {
namespace {

// A quota of "-1" or "max" means that there is none; both fail to parse as numbers.
double share(std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period) {
  if (!quota || !period || *quota == 0 || *period == 0) return no_quota;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// cpu.max holds quota and period in microseconds, such as "150000 100000".
double second_version(const std::string& folder) {
  const std::string line = line_of_file(folder + "/cpu.max");
  return share(number_in(line), number_in(line.substr(std::min(line.find(' '), line.size()))));
}

double first_version(const std::string& folder) {
  return share(number_of_file(folder + "/cpu.cfs_quota_us"), number_of_file(folder + "/cpu.cfs_period_us"));
}

// Identifies a group by its folder's device and inode: its path in a container may differ from its path on the host.
std::uint64_t identity_of(const std::string& folder) {
  struct stat found = {};
  return stat(folder.c_str(), &found) == 0 ? fnv1a(fmt::format("{} {}", found.st_dev, found.st_ino)) : 0;
}

}  // namespace

CgroupCpuQuota cpu_quota(const std::string& processes, const std::string& groups) {
  CgroupCpuQuota least;
  const auto consider = [&](const std::string& folder, double cpus) {
    if (cpus == no_quota || cpus > least.cpus) return;
    least = {cpus, identity_of(folder)};  // of equal ones the outermost, which most processes share
  };
  for (const std::string& folder : group_folders(processes, groups, "")) consider(folder, second_version(folder));
  for (const std::string& folder : group_folders(processes, groups, "cpu")) consider(folder, first_version(folder));
  return least;
}

const CgroupCpuQuota& granted_here() {
  static const CgroupCpuQuota found = cpu_quota();
  return found;
}

int within_quota(int cores, double quota) { return std::max(1, quota < cores ? static_cast<int>(quota) : cores); }

int granted(const CgroupCpuQuota& quota) {
  return quota.cpus == no_quota ? 0 : within_quota(std::numeric_limits<int>::max(), quota.cpus);
}

}  // namespace trellis::kernels
