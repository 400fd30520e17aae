#include "tools/train/peak.h"

#include "sim/cluster/machine/rank_limits.h"

namespace trellis::tools {

double peak_tflops(const std::string& machine, train::Precision precision) {
  return sim::rank_flops(sim::machine_named(machine), precision != train::Precision::fp32) / 1e12;
}

}  // namespace trellis::tools
