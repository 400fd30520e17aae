#include "tools/core/core_program_options.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "sim/hardware/figures/embedded_files.h"
#include "text/printable.h"
#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/program/output.h"

namespace trellis::tools {

using namespace sim::core;

std::pair<std::string, std::string> halves(const std::string& text, std::string_view option, std::string_view form) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) text::refuse("{} {}: expected {}", option, text, form);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void add_core_subject(CLI::App& app, CoreProgramOptions& s) {
  app.add_option("program", s.program, "One that ships (trellis core list), or a text file with one")->required();
  app.add_option("--chip", s.chip, "trn1, inf2, trn2, trn3 or ideal")->capture_default_str();
  app.add_option("-p,--parameter", s.parameters, "NAME=VALUE, of a program that ships; several times");
  app.add_option("--what-if", s.what_if, "FIGURE=VALUE: another value of a figure of the chip, such as dma.start=2us");
}

sim::ChipSpec chip_of(const CoreProgramOptions& s) {
  const auto others = [](std::string_view other) { return sim::data_text("chips", other); };
  sim::Figures figures = sim::Figures::read(sim::data_text("chips", s.chip), others);
  for (const std::string& change : s.what_if) {
    const auto [key, value] = halves(change, "--what-if", "FIGURE=VALUE");
    figures.set(key, std::string_view(value));
  }
  note_chip(s.chip, s.what_if, figures);
  return sim::ChipSpec(s.chip, std::move(figures));
}

const ShippedProgram* shipped_of(const CoreProgramOptions& s) {
  const auto found = shipped().find(s.program);
  if (found != shipped().end()) return &found->second;
  if (!std::filesystem::exists(s.program)) {
    if (s.program.find_first_of("./") != s.program.npos)
      throw std::system_error(ENOENT, std::generic_category(), fmt::format("cannot read '{}'", s.program));
    shipped_named(s.program);  // throws, naming the known programs
  }
  return nullptr;
}

Arguments arguments_of(const CoreProgramOptions& s, const ShippedProgram& program) {
  Arguments arguments(program.parameters);
  for (const std::string& p : s.parameters) {
    const auto [name, value] = halves(p, "-p", "NAME=VALUE");
    arguments.set(name, value);
  }
  return arguments;
}

NeuronCoreProgram program_of(const CoreProgramOptions& s, const sim::ChipSpec& chip) {
  if (const ShippedProgram* program = shipped_of(s)) return program->build(arguments_of(s, *program), chip);
  if (!s.parameters.empty()) throw std::invalid_argument("-p: only programs that ship have parameters");
  const std::string text = read_input(s.program);
  text::expect_text(s.program, text);
  try {
    return parse(text);
  } catch (const std::invalid_argument& error) {
    text::refuse("{}, {}", s.program, error.what());
  }
}

}  // namespace trellis::tools
