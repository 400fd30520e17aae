// Workloads played on a machine: a training step's computations and collectives.
#include "python/binding/signals.h"
#include "sim/cluster/workload/play.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;
using namespace sim;

nb::dict as_dict(const Workload& workload, const PlayResult& played) {
  nb::list parts, cells;
  for (std::size_t i = 0; i < played.parts.size(); ++i) {
    const PlayedTask& p = played.parts[i];
    const schedule::GraphTask& task = *workload.parts[i].task;
    parts.append(nb::make_tuple(task.name, workload.graph->streams[task.stream].name, p.start, p.end, p.algorithm));
  }
  for (std::size_t i = 0; i < played.cells.size(); ++i) {
    const PlayedTimeBreakdown& c = played.cells[i];
    cells.append(nb::make_tuple(workload.cells[i].ranks, c.compute, c.comm, c.exposed, c.idle));
  }
  nb::dict d;
  d["time_ps"] = played.time;
  d["parts"] = parts;
  d["cells"] = cells;
  d["path"] = played.path;
  d["exposed_ps"] = played.exposed_most;
  return d;
}

}  // namespace

void add_workloads(nb::module_& m) {
  m.def(
      "play",
      [](const MachineSpec& spec, const std::string& name, const std::string& text, const std::string& algorithm,
         const std::string& era, double flops, double memory, double within, std::int64_t most_effort) {
        Workload workload;
        PlayResult played;
        SignalWatcher signals;
        signals.watch([&] {
          workload = workload_of(read_graph(name, text));
          played = play(workload, Machine(spec),
                        {.era = era,
                         .algorithm = algorithm,
                         .flops = flops,
                         .memory = memory,
                         .within = within > 0 ? within : usual_within,
                         .most_effort = most_effort,
                         .stopped = [&](Time, double) { return signals.raised(); }});
        });
        return as_dict(workload, played);
      },
      "machine"_a, "name"_a, "text"_a, "algorithm"_a = "", "era"_a = "", "flops"_a = 0.0, "memory"_a = 0.0,
      "within"_a = 0.0, "most_effort"_a = 0);
}

}  // namespace trellis::binding
