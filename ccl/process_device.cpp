#include "ccl/process_device.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "ccl/config.h"
#include "device/fork_safe_singleton.h"
#include "device/visible_cores.h"
#include "kernels/dispatch/cpu_quota.h"
#include "kernels/dispatch/sysfs_topology.h"

namespace trellis::ccl {

int devices_for(int told, int cpus, int local_ranks) { return told != 0 ? told : std::max({cpus, local_ranks, 2}); }

int device_count() {
  const int told = devices_from_environment();
  if (told != 0) return told;
  int local_ranks = 1;
  try {
    local_ranks = launched_from_environment().local_ranks;
  } catch (const std::invalid_argument&) {  // counts one rank, as without a launcher
  }
  const auto cpus = static_cast<int>(kernels::affinity().size());
  return devices_for(told, kernels::within_quota(cpus, kernels::quota_here()), local_ranks);
}

std::shared_ptr<device::Device> device_of_rank(std::string_view name, int rank, int local_rank) {
  if (name == "host") return device::host_of_process();
  constexpr int most_cores = 1 << 20;
  const device::VisibleCoreSettings settings = device::core_settings();
  const bool one =
      settings.count == 1 || (!settings.visible.empty() && device::visible_cores(settings, most_cores).size() == 1);
  return device::open(name, {.core = one ? 0 : name.starts_with("sim:") ? rank : local_rank});
}

// Not destroyed at exit: objects that the program did not destroy may still be at work.
const std::shared_ptr<device::Device>& device_of_process() {
  struct Kept {
    std::once_flag once;
    std::shared_ptr<device::Device> device;
  };
  Kept& kept = device::of_this_process([] { return new Kept; });
  std::call_once(kept.once, [&] {
    const std::string name = device_from_environment();
    const LaunchedProcess l =
        name == "host" ? LaunchedProcess{} : launched_from_environment();  // the host needs no launcher
    kept.device = device_of_rank(name, l.rank, l.local_rank);
  });
  return kept.device;
}

}  // namespace trellis::ccl
