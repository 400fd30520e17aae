#include "tools/answer/asked_machine.h"

#include <algorithm>
#include <stdexcept>

#include "sim/cluster/machine/figures_override.h"
#include "sim/cluster/machine/import/machine_argument.h"
#include "text/refuse.h"
#include "tools/program/output.h"
#include "tools/program/provenance.h"

namespace trellis::tools {
namespace {

void note(const char* what, const std::string& name, const std::vector<std::string>& what_if,
          const std::string& digest) {
  std::string words = name;
  for (const std::string& change : what_if) words += ", what if " + change;
  note_origin(what, words);
  note_origin("figures", digest);
}

}  // namespace

sim::MachineSpec machine_with(const std::string& typed, const std::string& figures) {
  sim::MachineSpec spec = sim::typed_machine(typed);
  if (!figures.empty()) sim::replace_figures(spec, figures, read_input(figures));
  return spec;
}

sim::MachineSpec asked_machine(const std::string& typed, const std::vector<std::string>& what_if,
                               const std::string& era, const std::string& figures) {
  sim::MachineSpec spec = machine_with(typed, figures);
  for (const std::string& change : what_if) sim::what_if(spec, change);
  try {
    sim::Machine{spec};
  } catch (const std::invalid_argument& error) {  // its message names a figure or a level, but no machine
    text::refuse("machine {}: {}", typed, error.what());
  }
  note("machine", typed, what_if, sim::figures_digest(spec));
  note_origin("era", era.empty() ? spec.era : era);
  note_origin("rests on", rests_on(spec));
  return spec;
}

std::string rests_on(const sim::MachineSpec& spec) {
  const auto& figures = spec.figures.all();
  const bool assumed =
      std::ranges::all_of(figures, [](const auto& f) { return f.second.mark == sim::FigureProvenance::assumed; });
  return assumed && !figures.empty() ? "assumed figures alone: nothing of this machine was measured" : "";
}

void note_chip(const std::string& name, const std::vector<std::string>& what_if, const sim::Figures& figures) {
  note("chip", name, what_if, sim::digest_words(figures.text()));
}

}  // namespace trellis::tools
