#include "sim/cluster/workload/compute_rates.h"

#include <algorithm>

#include "sim/cluster/machine/rank_capacity.h"
#include "sim/cluster/operation/operation_model.h"

namespace trellis::sim {
namespace {

ComputeRates computation_of(const Workload& workload, const Machine& machine, const PlayOptions& options,
                            double slowness) {
  const auto some = [&](auto needs) {
    return std::ranges::any_of(workload.parts,
                               [&](const WorkloadTask& part) { return part.computes && needs(*part.task); });
  };
  using Task = schedule::GraphTask;
  const bool chip = !machine.spec().chip.empty();
  ComputeRates computation;
  if (some([](const Task& t) { return t.flops > 0; }))
    computation.flops = options.flops > 0 || !chip ? options.flops : rank_flops(machine);
  if (some([](const Task& t) { return t.bytes > 0; }))
    computation.memory =
        options.memory > 0 || !chip ? options.memory / slowness : engines_of(machine, slowness).memory_rate();
  if (!chip || options.flops > 0 || options.memory > 0 || !some([](const Task& t) { return !t.work.empty(); }))
    return computation;
  const EngineRates engines = engines_of(machine, slowness);
  for (const schedule::OperationShape& s : workload.graph->shapes)
    computation.seconds.push_back(operation_time(s, engines).total);
  return computation;
}

}  // namespace

EngineRates engines_of(const Machine& machine, double memory_slowness) {
  const Figures& f = machine.spec().figures;
  const double cores = f.number("cores") / machine.cores();
  if (memory_slowness == 1) return EngineRates(f, cores, machine.spec().chip);
  Figures slow = f;
  slow.set("hbm.rate", f.rate("hbm.rate") / memory_slowness);
  return EngineRates(slow, cores, machine.spec().chip);
}

double memory_slowness(const Workload& workload, const WorkloadTask& part, const Machine& machine) {
  double slowness = 1;
  if (std::ranges::find(machine.spec().defects, Defect::Kind::hbm, &Defect::kind) == machine.spec().defects.end())
    return slowness;
  for (const std::uint32_t cell : part.cells)
    for (const Rank r : workload.cells[cell].ranks) slowness = std::max(slowness, machine.memory_slowness(r));
  return slowness;
}

std::map<double, ComputeRates> computations_of(const Workload& workload, const Machine& machine,
                                               const PlayOptions& options) {
  std::map<double, ComputeRates> all;
  for (const WorkloadTask& part : workload.parts) {
    if (!part.computes) continue;
    const auto [found, fresh] = all.try_emplace(memory_slowness(workload, part, machine));
    if (fresh) found->second = computation_of(workload, machine, options, found->first);
  }
  return all;
}

}  // namespace trellis::sim
