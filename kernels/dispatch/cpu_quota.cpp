#include "kernels/dispatch/cpu_quota.h"

#include <algorithm>

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

}  // namespace

double cpu_quota(const std::string& processes, const std::string& groups) {
  double least = no_quota;
  for (const std::string& folder : group_folders(processes, groups, ""))
    least = std::min(least, second_version(folder));
  for (const std::string& folder : group_folders(processes, groups, "cpu"))
    least = std::min(least, first_version(folder));
  return least;
}

double quota_here() {
  static const double found = cpu_quota();
  return found;
}

int within_quota(int cores, double quota) { return std::max(1, quota < cores ? static_cast<int>(quota) : cores); }

}  // namespace trellis::kernels
