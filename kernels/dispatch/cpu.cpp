#include "kernels/dispatch/cpu.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/dispatch/cpu_quota.h"
#include "kernels/dispatch/sysfs_topology.h"
#include "kernels/dispatch/usable_cores.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

std::string model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
  return "unknown";
}

#if defined(__x86_64__)
// F16C converts between half and single precision. Not every compiler's __builtin_cpu_supports knows that name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

// The cache sizes by hwloc, for where the system's files do not say them: it asks the CPU itself, which takes
// milliseconds.
CacheSizes asked_of_hwloc() {
  const UsableCores here = placement();
  return {here.l1_bytes, here.l2_bytes, here.l3_bytes};
}

// An environment variable, because twins are chosen before a program can pass an option.
std::string_view wanted() {
  const char* value =
      std::getenv("TRELLIS_ISA");  // NOLINT(concurrency-mt-unsafe): nothing here changes the environment
  return value == nullptr ? "" : value;
}

Cpu found() {
  Cpu c;
  c.model = model();
  c.has[0] = true;
#if defined(__x86_64__)
  const auto has = [&](Isa isa) -> bool& { return c.has[static_cast<std::size_t>(isa)]; };
  has(Isa::avx2) = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  has(Isa::avx512) = has(Isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  has(Isa::avx512bf16) = has(Isa::avx512) && __builtin_cpu_supports("avx512bf16");
#endif
  c.best = isa_for(c.has, wanted());
  const std::vector<int> threads = affinity();
  CacheSizes caches = cache_sizes(threads.front());
  if (caches.l1_bytes == 0) caches = asked_of_hwloc();
  if (caches.l1_bytes != 0) c.l1_bytes = caches.l1_bytes;
  if (caches.l2_bytes != 0) c.l2_bytes = caches.l2_bytes;
  c.l3_bytes = caches.l3_bytes;
  c.cores = within_quota(count_cores(threads), quota_here());
  return c;
}

}  // namespace

Isa isa_for(const std::array<bool, isa_count>& has, std::string_view wanted) {
  Isa best = Isa::vec128;
  std::string known;
  for (std::size_t i = 0; i < isa_count; ++i)
    if (const auto isa = static_cast<Isa>(i); has[i]) {
      if (name(isa) == wanted) return isa;
      best = isa;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name(isa));
    }
  if (wanted.empty()) return best;
  text::refuse("TRELLIS_ISA={}: expected a set of instructions that this CPU has: {}", wanted, known);
}

const Cpu& cpu() {
  static const Cpu here = found();
  return here;
}

}  // namespace trellis::kernels
