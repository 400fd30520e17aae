// What computations of a workload take on a machine, whatever else happens there.
#pragma once

#include <vector>

#include "sim/cluster/workload/play.h"

namespace trellis::sim {

struct Computation {
  double flops = 0, memory = 0;      // what a rank computes, and reads and writes of its HBM, in a second
  std::vector<double> seconds = {};  // by shape of the workload's graph; empty: rates decide
  bool operator==(const Computation&) const = default;
};

// Rates that the options state replace those of a chip's engines. Only what the workload's tasks need is set, so that
// machines on which they take the same time are equal.
Computation computation_of(const Workload&, const Machine&, const PlayOptions&);

}  // namespace trellis::sim
