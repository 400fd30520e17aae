#include "kernels/cpu.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace trellis::kernels {
namespace {

std::string model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
  return "unknown";
}

std::size_t cache(int question, std::size_t otherwise) {
  const long bytes = sysconf(question);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : otherwise;
}

Cpu found() {
  Cpu c;
  c.model = model();
  c.has[0] = true;
#if defined(__x86_64__)
  c.has[static_cast<std::size_t>(Isa::avx2)] =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  c.has[static_cast<std::size_t>(Isa::avx512)] =
      c.has[static_cast<std::size_t>(Isa::avx2)] && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  for (std::size_t i = 0; i < isa_count; ++i)
    if (c.has[i]) c.best = static_cast<Isa>(i);
  c.l1_bytes = cache(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  c.l2_bytes = cache(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  c.l3_bytes = cache(_SC_LEVEL3_CACHE_SIZE, 0);
  cpu_set_t mine;
  CPU_ZERO(&mine);
  c.cores = sched_getaffinity(0, sizeof mine, &mine) == 0 ? std::max(CPU_COUNT(&mine), 1) : 1;
  return c;
}

}  // namespace

const Cpu& cpu() {
  static const Cpu here = found();
  return here;
}

}  // namespace trellis::kernels
