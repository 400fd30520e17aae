#include "ccl/transports/segment/allowed_cores.h"

#include <map>
#include <mutex>

#include "kernels/dispatch/cpu.h"
#include "kernels/dispatch/cpu_quota.h"

namespace trellis::ccl {
namespace {

// Reads each CPU's place only once in a process: otherwise each new communicator would wait milliseconds for the files,
// where there are hundreds of CPUs.
kernels::ThreadPlace place_of(int cpu) {
  static std::mutex mutex;
  static std::map<int, kernels::ThreadPlace> known;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(cpu);
  return found != known.end() ? found->second : known.emplace(cpu, kernels::place_of(cpu)).first->second;
}

}  // namespace

AllowedCores seen_here() {
  const kernels::Cpu& here = kernels::cpu();
  AllowedCores seen{.threads = kernels::affinity(),
                    .quota = kernels::granted_here(),
                    .l2_bytes = here.l2_bytes,
                    .l3_bytes = here.l3_bytes};
  for (const int cpu : seen.threads) seen.places.push_back(place_of(cpu));
  return seen;
}

}  // namespace trellis::ccl
