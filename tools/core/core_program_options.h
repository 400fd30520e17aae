// The program that a core command works on: a built-in one, by name, or a text file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/program/assembler.h"
#include "sim/core/programs/shipped_programs.h"
#include "tools/program/cli_app.h"

namespace trellis::tools {

struct CoreProgramOptions {
  std::string program;
  std::string chip = "trn2";
  std::vector<std::string> parameters;  // NAME=VALUE
  std::vector<std::string> what_if;     // FIGURE=VALUE
};

void add_core_subject(CLI::App&, CoreProgramOptions&);

// The parts of an option before and after its '='. Throws invalid_argument with the expected form.
std::pair<std::string, std::string> halves(const std::string& text, std::string_view option, std::string_view form);

// The chip, with the changed figures.
sim::ChipSpec chip_of(const CoreProgramOptions&);
// The built-in program; null for a file.
const sim::core::ShippedProgram* shipped_of(const CoreProgramOptions&);
sim::core::Arguments arguments_of(const CoreProgramOptions&, const sim::core::ShippedProgram&);
sim::core::NeuronCoreProgram program_of(const CoreProgramOptions&, const sim::ChipSpec&);

}  // namespace trellis::tools
