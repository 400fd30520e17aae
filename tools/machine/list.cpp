// trellis machine list, trellis chip list: what ships, with its main figures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/cluster/machine/machine.h"
#include "sim/hardware/chip/chip.h"
#include "sim/hardware/figures/embedded_files.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/table.h"

namespace trellis::tools {
namespace {

struct Options {
  bool json = false;
};

void add(CLI::App& app, Options& o) { app.add_flag("--json", o.json, "Print JSON"); }

std::string levels_text(const sim::MachineSpec& spec) {
  std::string text;
  for (const sim::TopologyLevel& level : spec.levels)
    text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", level.kind, fmt::join(level.dims, "x"), level.name);
  return text;
}

int machines(const Options& o) {
  Table table("machines", {left("machine"),
                           left("chip"),
                           {"chips"},
                           {"ranks"},
                           {"a chip sends", "B/s"},
                           left("levels"),
                           left("several by"),
                           left("era")});
  for (const std::string& name : sim::machine_names()) {
    const sim::Machine machine = sim::machine_named(name);
    const sim::MachineSpec& spec = machine.spec();
    table.add({name, spec.chip, std::int64_t{machine.chips()}, std::int64_t{machine.ranks()}, machine.injection(),
               levels_text(spec), spec.cluster.kind.empty() ? "" : spec.cluster.kind + " of " + spec.cluster.name,
               spec.era});
  }
  write_output("", o.json ? table.json() : table.text());
  return 0;
}

int chips(const Options& o) {
  Table table("chips", {left("chip"),
                        {"cores"},
                        {"HBM (GiB)"},
                        {"HBM rate", "B/s"},
                        left("tensor engine"),
                        {"tensor clock", "Hz"},
                        {"DMA engines of a core"}});
  for (const std::string& name : sim::data_names("chips")) {
    const sim::ChipSpec chip = sim::chip_named(name);
    table.add({name, std::int64_t{chip.cores}, static_cast<std::int64_t>(chip.memory.hbm_bytes) >> 30,
               chip.memory.hbm_rate, fmt::format("{}x{}", chip.tensor.rows, chip.tensor.columns), chip.engine[0].clock,
               std::int64_t{chip.dma.engines}});
  }
  write_output("", o.json ? table.json() : table.text());
  return 0;
}

const RegisteredCommand machine_list("machine list", "Lists the machines that ship, with their main figures",
                                     "trellis machine list\n"
                                     "trellis machine list --json",
                                     add, machines);

const RegisteredCommand chip(Command{
    .path = "chip", .summary = "Chips: one NeuronCore generation each", .examples = "trellis chip list"});
const RegisteredCommand chip_list("chip list", "Lists the chips that ship, with their main figures",
                                  "trellis chip list\n"
                                  "trellis chip list --json",
                                  add, chips);

}  // namespace
}  // namespace trellis::tools
