#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "sim/core/check/check.h"
#include "sim/core/check/race_detector.h"
#include "sim/core/program/instruction_kind.h"
#include "sim/core/program/instructions_markdown.h"
#include "sim/core/programs/shipped_programs.h"
#include "tools/core/core_program_options.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/program/table.h"

namespace trellis::tools {
namespace {

using namespace sim::core;

// The group of the core commands.
const RegisteredCommand group(Command{.path = "core",
                                      .summary = "Run programs on a simulated NeuronCore",
                                      .examples = "trellis core list\n"
                                                  "trellis core run matmul --chip trn2 -p M=512 -p K=512 -p N=512\n"
                                                  "trellis core profile matmul --chip trn1 -o matmul.html"});

struct ListOptions {
  std::string what = "programs";
};

void add_list(CLI::App& app, ListOptions& o) {
  app.add_option("what", o.what, "programs, with their parameters; instructions; or chips")
      ->check(CLI::IsMember({"programs", "instructions", "chips"}))
      ->capture_default_str();
}

std::string programs_text() {
  std::string out;
  for (const auto& [name, program] : shipped()) {
    out += fmt::format("{:16} {}\n", name, program.summary);
    for (const ProgramParameter& p : program.parameters) {
      std::string value = p.words.empty() ? fmt::format("{}", p.value) : p.words.at(static_cast<std::size_t>(p.value));
      if (p.words.size() > 1) value += fmt::format(" of {}", fmt::join(p.words, ", "));
      out += fmt::format("    {}={}  {}\n", p.name, value, p.meaning);
    }
  }
  return out;
}

int list(const ListOptions& o) {
  if (o.what == "chips") {
    std::string out;
    for (const std::string& chip : sim::chip_names()) out += chip + "\n";
    write_output("", out);
  } else {
    write_output("", o.what == "programs" ? programs_text() : instruction_table());
  }
  return 0;
}

struct ShowOptions {
  CoreProgramOptions subject;
  std::string output;
};

void add_show(CLI::App& app, ShowOptions& o) {
  app.description("Prints a program as text: an instruction a line, with its semaphores. It can be run from there.");
  add_core_subject(app, o.subject);
  app.add_option("-o,--output", o.output, "Write here [standard output]")->check(output_file());
}

int show(const ShowOptions& o) {
  const sim::ChipSpec chip = chip_of(o.subject);
  write_output(o.output, print(program_of(o.subject, chip)));
  return 0;
}

struct CheckOptions {
  CoreProgramOptions subject;
};

void add_check(CLI::App& app, CheckOptions& o) {
  app.description(
      "Checks a program against the rules of the hardware; then runs it for its semaphores: that it ends, that no two\n"
      "touches of one place race, that nothing is read that was never written, and that no register leads an operand\n"
      "out of its buffer. The exit status is 1 when it fails.");
  add_core_subject(app, o.subject);
}

int check_program(const CheckOptions& o) {
  const sim::ChipSpec chip = chip_of(o.subject);
  const NeuronCoreProgram program = program_of(o.subject, chip);
  std::string out;
  try {
    check(program, chip);
    for (const std::string& race : races(program, chip)) out += race + "\n";
    for (const std::string& read : unwritten_reads(program)) out += read + "\n";
  } catch (const std::invalid_argument& e) {
    out += fmt::format("{}\n", e.what());
  }
  write_output("", out.empty()
                       ? fmt::format("{}: {} instructions, no fault found\n", program.name, program.instructions.size())
                       : out);
  return out.empty() ? 0 : 1;
}

const RegisteredCommand registered_list("core list", "Programs that ship, instructions, or chips",
                                        "trellis core list\ntrellis core list instructions", add_list, list);
const RegisteredCommand registered_show("core show", "Print a program as text", "trellis core show reduce --chip trn2",
                                        add_show, show);
const RegisteredCommand registered_check("core check", "Check a program against the hardware's rules, and for races",
                                         "trellis core check matmul --chip trn2\n"
                                         "trellis core check mine.txt --chip trn1",
                                         add_check, check_program);

}  // namespace
}  // namespace trellis::tools
