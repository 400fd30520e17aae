#include "sim/core/program/instructions_markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/core/program/instruction_kind.h"

namespace trellis::sim::core {
namespace {

constexpr std::array<std::string_view, 3> generations = {"trn1", "trn2", "trn3"};

void add_once(std::vector<std::string>& to, const std::string& text) {
  if (std::ranges::find(to, text) == to.end()) to.push_back(text);
}

// The sources of a kind's cost figures, for every generation that has the kind.
std::string cost_source(const InstructionKind& kind, const std::vector<ChipSpec>& chips) {
  std::vector<std::string> all;
  if (!kind.cost.empty()) add_once(all, kind.cost);
  if (kind.sequencer) add_once(all, "semaphore.instruction");
  if (kind.dma) add_once(all, "dma.*");
  const std::string prefix = fmt::format("cost.{}.", kind.name);
  for (const ChipSpec& chip : chips) {
    if (chip.generation < kind.generation) continue;
    for (auto f = chip.figures().all().lower_bound(prefix);
         f != chip.figures().all().end() && f->first.starts_with(prefix); ++f)
      add_once(all, f->second.mark == FigureProvenance::documented
                        ? f->second.source
                        : fmt::format("{}: {}", name(f->second.mark), f->second.source));
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace

std::string instruction_table() {
  std::vector<ChipSpec> chips;
  for (const std::string_view chip : generations) chips.push_back(chip_named(chip));
  std::string text =
      "# Instructions\n\n"
      "Printed by `instruction_table()`. Names and operands follow the public nki.isa and nki.collectives; every one "
      "is checked and timed.\n"
      "From: the first NeuronCore generation that has it. Functional: its results are computed. Cost: keys of the chip "
      "files, or the source of their\n"
      "`cost.` figures.\n\n"
      "| instruction | what it does | engines | from | functional | timed | cost | not yet |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const auto& [kind_name, kind] : kinds()) {
    std::vector<std::string_view> engines;
    for (const Engine e : kind.engines) engines.push_back(name(e));
    const bool moves_nothing = kind.outputs.empty() && kind.inputs.empty();
    const bool functional = kind.run != nullptr || kind.sequencer || (moves_nothing && kind.not_yet.empty());
    text += fmt::format("| `{}` | {} | {} | v{} | {} | yes | {} | {} |\n", kind_name, kind.summary,
                        fmt::join(engines, ", "), kind.generation, functional ? "yes" : "no", cost_source(kind, chips),
                        kind.not_yet);
  }
  text += fmt::format("\n{} instructions.\n", kinds().size());
  return text;
}

}  // namespace trellis::sim::core
