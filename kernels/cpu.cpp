#include "kernels/cpu.h"

#include <fstream>

#include "kernels/placement.h"

namespace trellis::kernels {
namespace {

std::string model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
  return "unknown";
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
  const Placement here = placement();
  if (here.l1_bytes != 0) c.l1_bytes = here.l1_bytes;
  if (here.l2_bytes != 0) c.l2_bytes = here.l2_bytes;
  c.l3_bytes = here.l3_bytes;
  c.cores = static_cast<int>(here.cores.size());
  return c;
}

}  // namespace

const Cpu& cpu() {
  static const Cpu here = found();
  return here;
}

}  // namespace trellis::kernels
