#include "sim/cluster/workload/computation.h"

#include <algorithm>

#include "sim/cluster/machine/rank_limits.h"
#include "sim/cluster/operation/operation.h"

namespace trellis::sim {

Computation computation_of(const Workload& workload, const Machine& machine, const PlayOptions& options) {
  const auto some = [&](auto needs) {
    return std::ranges::any_of(workload.parts,
                               [&](const WorkloadPart& part) { return part.computes && needs(*part.task); });
  };
  using Task = schedule::GraphTask;
  const bool chip = !machine.spec().chip.empty();
  Computation computation;
  if (some([](const Task& t) { return t.flops > 0; }))
    computation.flops = options.flops > 0 || !chip ? options.flops : rank_flops(machine);
  const Figures& f = machine.spec().figures;
  const double cores = chip ? f.number("cores") / machine.cores() : 0;
  if (some([](const Task& t) { return t.bytes > 0; }))
    computation.memory = options.memory > 0 || !chip ? options.memory : EngineRates(f, cores).memory_rate();
  if (!chip || options.flops > 0 || options.memory > 0 || !some([](const Task& t) { return !t.work.empty(); }))
    return computation;
  const EngineRates engines(f, cores);
  for (const schedule::OperationShape& s : workload.graph->shapes)
    computation.seconds.push_back(operation_time(s, engines).total);
  return computation;
}

}  // namespace trellis::sim
