// Descriptions of machines, which can be edited, and what is computed from them: sizes, bandwidths, memory, routes.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string_view.h>

#include <map>

#include "python/binding/module_parts.h"
#include "sim/cluster/machine/dims_text.h"
#include "sim/cluster/machine/figures_override.h"
#include "sim/cluster/machine/import/machine_argument.h"
#include "sim/cluster/machine/machine.h"
#include "sim/cluster/machine/rank_capacity.h"
#include "sim/cluster/workload/step_price.h"
#include "sim/hardware/chip/chip.h"
#include "sim/hardware/figures/figure_units.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;
using namespace sim;

nb::dict figures_of(const Figures& figures) {
  nb::dict all;
  for (const auto& [key, figure] : figures.all())
    all[key.c_str()] = nb::make_tuple(figure.value, std::string(name(figure.dimension)), std::string(name(figure.mark)),
                                      figure.low, figure.high, figure.source);
  return all;
}

std::vector<std::tuple<std::string, std::string, std::vector<Chip>>> levels_of(const MachineSpec& spec) {
  std::vector<std::tuple<std::string, std::string, std::vector<Chip>>> levels;
  for (const TopologyLevel& level : spec.levels) levels.emplace_back(level.kind, level.name, level.dims);
  return levels;
}

// Of ranks whose memory a defect made slower or faster: how many times as long it takes. Ranks of a chip may share it.
std::map<Rank, double> memory_at_defects(const Machine& machine, const MachineSpec& spec) {
  std::map<Rank, double> all;
  const Rank of_chip = machine.ranks() / machine.chips();
  for (const Defect& defect : spec.defects) {
    if (defect.kind != Defect::Kind::hbm) continue;
    const Rank first = defect.from - defect.from % of_chip;
    for (Rank r = first; r < first + of_chip; ++r)
      if (const double slowness = machine.memory_slowness(r); slowness != 1) all[r] = slowness;
  }
  return all;
}

// The links from one rank to another: name, bytes a second, latency.
std::vector<std::tuple<std::string, double, Time>> route_of(const MachineSpec& s, Rank from, Rank to) {
  const Machine machine(s);
  if (std::min(from, to) < 0 || std::max(from, to) >= machine.ranks())
    throw std::invalid_argument("ranks " + std::to_string(from) + " and " + std::to_string(to) + ": " + s.name +
                                " has " + std::to_string(machine.ranks()));
  std::vector<ResourceId> links;
  machine.route(from, to, links);
  std::vector<std::tuple<std::string, double, Time>> way;
  for (const ResourceId r : links) way.emplace_back(machine.resource_name(r), machine.rate(r), machine.latency(r));
  return way;
}

}  // namespace

void add_machines(nb::module_& m) {
  nb::class_<MachineSpec>(m, "MachineSpec")
      .def_rw("name", &MachineSpec::name)
      .def_rw("chip", &MachineSpec::chip)
      .def_prop_ro("levels", &levels_of)
      .def(
          "set_dims",
          [](MachineSpec& s, std::size_t level, const std::vector<Chip>& dims) {
            if (level >= s.levels.size())
              throw nb::index_error((s.name + " has " + std::to_string(s.levels.size()) + " levels").c_str());
            std::string text;
            for (const Chip size : dims) text += (text.empty() ? "" : "x") + std::to_string(size);
            s.levels[level].dims = dims_of(text);  // refuses what machine files and shapes may not say
          },
          "level"_a, "dims"_a)
      .def_prop_ro("figures", [](const MachineSpec& s) { return figures_of(s.figures); })
      .def_prop_ro("digest", [](const MachineSpec& s) { return figures_digest(s); })
      .def(
          "set_figure",
          [](MachineSpec& s, const std::string& key, const std::string& text) { s.figures.set(key, text); }, "key"_a,
          "text"_a)
      .def(
          "set_figure", [](MachineSpec& s, const std::string& key, double value) { s.figures.set(key, value); },
          "key"_a, "value"_a)
      .def(
          "what_if", [](MachineSpec& s, const std::string& change) { what_if(s, change); }, "change"_a)
      .def("facts",
           [](const MachineSpec& s) {
             const Machine machine(s);
             nb::dict d;
             d["ranks"] = machine.ranks();
             d["chips"] = machine.chips();
             d["host_ranks"] = ranks_of_host(machine);
             d["dims"] = machine.dims();
             std::map<Rank, double> at_defects;
             for (const Defect& defect : s.defects)
               for (const Rank r : {defect.from, defect.to}) at_defects[r] = machine.slowness(r);
             d["at_defects"] = at_defects;
             d["memory_at_defects"] = memory_at_defects(machine, s);
             d["injection"] = machine.injection();
             d["bisection"] = machine.bisection().rate;
             d["eras"] = machine.eras();
             if (!s.chip.empty()) d["rank_memory"] = rank_memory(machine), d["rank_flops"] = rank_flops(machine);
             return d;
           })
      .def("route", &route_of, "source"_a, "target"_a);
  m.def(
      "machine_spec", [](const std::string& name) { return machine_spec(name); }, "name"_a);
  m.def("machine_file", &machine_file, "typed"_a);
  m.def("machine_of_file", &machine_of_file, "typed"_a, "path"_a, "text"_a);
  m.def("machine_names", &machine_names);
  m.def("chip_names", &chip_names);
  m.def(
      "chip_figures", [](const std::string& name) { return figures_of(chip_named(name).figures()); }, "name"_a);
}

}  // namespace trellis::binding
