// What computations of a workload take on a machine, whatever else happens there.
#pragma once

#include <map>
#include <vector>

#include "sim/cluster/operation/engine_rates.h"
#include "sim/cluster/workload/play.h"

namespace trellis::sim {

struct ComputeRates {
  double flops = 0, memory = 0;      // what a rank computes, and reads and writes of its HBM, in a second
  std::vector<double> seconds = {};  // by shape of the workload's graph; empty: rates decide
  bool operator==(const ComputeRates&) const = default;
};

// How much slower than usual the memory of a computation's ranks is: by the slowest of them (Machine::memory_slowness),
// for which the others wait.
double memory_slowness(const Workload&, const WorkloadTask&, const Machine&);

// What computations take, for each memory slowness that one of the workload's computations has. Rates that the options
// state replace those of a chip's engines. Only what the workload's tasks need is set, so that machines on which they
// take the same time compare equal.
std::map<double, ComputeRates> computations_of(const Workload&, const Machine&, const PlayOptions&);

// Of a rank of the machine, which must have a chip.
EngineRates engines_of(const Machine&, double memory_slowness = 1);

}  // namespace trellis::sim
