#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/figures/figure_units.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "tools/program/json_text.h"
#include "tools/program/table.h"
#include "tools/topo/fabric_layers.h"
#include "tools/topo/machine_renderings.h"

namespace trellis::tools {
namespace {

using sim::Figure;
using sim::Machine;

std::string value_words(double value, sim::Dimension dimension) {
  const sim::Unit& unit = sim::unit_for(value, dimension);
  return fmt::format("{:.4g}{}{}", value / unit.size, unit.name.empty() ? "" : " ", unit.name);
}

std::string range_words(const Figure& f) {
  if (f.low == f.high) return "";
  return fmt::format("{} to {}", value_words(f.low, f.dimension), value_words(f.high, f.dimension));
}

std::string source_words(const Figure& f) {
  std::string text = fmt::format("{}", fmt::join(f.records, " "));
  if (!f.source.empty()) text += (text.empty() ? "" : "; ") + f.source;
  return text;
}

// Whether a figure matters to a transfer: one of links, memory, engines or software.
bool describes(std::string_view key, const Machine& machine) {
  for (const sim::TopologyLevel& level : machine.spec().levels)
    if (key.starts_with(level.name + ".")) return true;
  if (machine.spec().chip.empty()) return false;
  for (const char* prefix : {"hbm.", "collective.", "dma.start", "dma.engine", "dma.engines", "semaphore.latency"})
    if (key.starts_with(prefix)) return true;
  return key.starts_with(fmt::format("era.{}.", machine.spec().era));
}

std::string dims_words(const std::vector<Chip>& dims) { return fmt::format("{}", fmt::join(dims, "x")); }

Table level_table(const FabricLayers& plan) {
  Table table("levels", {left("level"), left("kind"), left("dims"), left("joins"), {"chips"}, {"bisection", "B/s"}});
  for (const FabricLayer& layer : plan.layers())
    table.add({layer.level.name, layer.level.kind, dims_words(layer.fabric->dims()),
               layer.inner() == 1 ? std::string("chips") : fmt::format("units of {} chips", layer.inner()),
               std::int64_t{layer.chips()},
               layer.fabric->bisection().rate * (layer.fabric->attached() ? 1 : layer.inner())});
  return table;
}

// Every kind of link: its owner, and its speed where nothing is defective, as defects are listed separately.
Table link_table(const Machine& asked) {
  sim::MachineSpec spec = asked.spec();
  spec.defects.clear();
  const Machine machine(std::move(spec));
  Table table("links", {left("link"), left("of"), {"number"}, {"rate", "B/s"}, {"latency", "s"}});
  const auto ranks = static_cast<ResourceId>(machine.ranks());
  for (ResourceId first = 0; first < machine.resources(); first += ranks) {
    const sim::Rank span = machine.span(first);
    const sim::Rank cores = machine.cores();
    std::string owner = span < cores    ? (span == 1 ? "a rank" : fmt::format("{} ranks", span))
                        : span == cores ? "a chip"
                                        : fmt::format("{} chips", span / cores);
    table.add({std::string(machine.port_name(first)), std::move(owner), std::int64_t{machine.ranks() / span},
               machine.rate(first), sim::in_seconds(machine.latency(first))});
  }
  return table;
}

Table figure_table(const Machine& machine) {
  Table table("figures", {left("figure"), {"value"}, left("mark"), left("range"), left("source")});
  for (const auto& [key, figure] : machine.spec().figures.all())
    if (describes(key, machine))
      table.add({key, value_words(figure.value, figure.dimension), std::string(name(figure.mark)), range_words(figure),
                 source_words(figure)});
  return table;
}

std::string defect_words(const sim::Defect& d) {
  using Kind = sim::Defect::Kind;
  const std::string left = d.factor <= 0 ? "dead" : fmt::format("at {:g} of its rate", d.factor);
  if (d.kind == Kind::link) return fmt::format("the link from rank {} towards {}: {}", d.from, d.to, left);
  const char* what = d.kind == Kind::nic ? "network interface" : d.kind == Kind::hbm ? "HBM" : "whole";
  return fmt::format("rank {}'s {}: {}", d.from, what, left);
}

std::string heading(const Machine& machine) {
  std::string text = fmt::format("{}: {} rank{}", machine.name(), machine.ranks(), machine.ranks() == 1 ? "" : "s");
  if (machine.cores() > 1) text += fmt::format(", {} a chip, {} chips", machine.cores(), machine.chips());
  if (!machine.spec().chip.empty()) text += fmt::format(" ({})", machine.spec().chip);
  text += "\n";
  const auto line = [&](std::string_view what, const std::string& value) {
    text += fmt::format("  {:12} {}\n", what, value);
  };
  line("chip's ways", machine.injection() > 0 ? sim::rate_words(machine.injection()) + " out, all together" : "none");
  if (machine.bisection().rate > 0)
    line("bisection", sim::rate_words(machine.bisection().rate) + " one way, between the halves");
  if (!machine.eras().empty())
    line("software", fmt::format("{}; known are {}", machine.spec().era, fmt::join(machine.eras(), ", ")));
  for (const sim::Defect& d : machine.spec().defects) line("what if", defect_words(d));
  return text;
}

}  // namespace

std::string sim_topo_text(const Machine& machine) {
  const FabricLayers plan(machine);
  std::string text = heading(machine) + "\n";
  if (!plan.layers().empty()) text += level_table(plan).text() + "\n";
  return text + link_table(machine).text() + "\n" + figure_table(machine).text();
}

std::string sim_topo_json(const Machine& machine) {
  const FabricLayers plan(machine);
  nlohmann::ordered_json j{{"machine", machine.name()},
                           {"chip", machine.spec().chip},
                           {"ranks", machine.ranks()},
                           {"chips", machine.chips()},
                           {"ranks_a_chip", machine.cores()},
                           {"injection_Bps", machine.injection()},
                           {"bisection_Bps", machine.bisection().rate},
                           {"eras", machine.eras()},
                           {"era", machine.spec().era}};
  for (const Table& table : {level_table(plan), link_table(machine)}) j.update(table.object());
  j["figures"] = nlohmann::ordered_json::array();
  for (const auto& [key, f] : machine.spec().figures.all())
    if (describes(key, machine))
      j["figures"].push_back({{"figure", key},
                              {"value", f.value},
                              {"unit", sim::own_unit(f.dimension).name},
                              {"mark", name(f.mark)},
                              {"low", f.low},
                              {"high", f.high},
                              {"records", f.records},
                              {"source", f.source}});
  j["what_if"] = nlohmann::ordered_json::array();
  for (const sim::Defect& d : machine.spec().defects) j["what_if"].push_back(defect_words(d));
  return json_text(j);
}

}  // namespace trellis::tools
