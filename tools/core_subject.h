// What the core commands work on: a program that ships, by name, or a text file with one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/assembler.h"
#include "sim/core/shipped.h"
#include "tools/cli_app.h"

namespace trellis::tools {

struct CoreSubject {
  std::string program;
  std::string chip = "trn2";
  std::vector<std::string> parameters;  // NAME=VALUE
  std::vector<std::string> what_if;     // FIGURE=VALUE
};

void add_core_subject(CLI::App&, CoreSubject&);

// What an option has before and after its '='; throws invalid_argument, with the form that was expected.
std::pair<std::string, std::string> halves(const std::string& text, std::string_view option, std::string_view form);

// The chip, with the figures that were changed.
sim::ChipSpec chip_of(const CoreSubject&);
// The one that ships; null for a file.
const sim::core::Shipped* shipped_of(const CoreSubject&);
sim::core::Arguments arguments_of(const CoreSubject&, const sim::core::Shipped&);
sim::core::Program program_of(const CoreSubject&, const sim::ChipSpec&);

}  // namespace trellis::tools
