#include "tools/train/operation_times_option.h"

#include "ccl/print_to_stderr.h"

namespace trellis::tools {

void add_times_option(CLI::App& app, std::string& times) {
  app.add_option("--times", times,
                 "How to find an operation's time: formulas; or programs, which simulates the operation's program of\n"
                 "sim/core at its shape, instruction by instruction (kept on disk); formulas where it has none")
      ->check(CLI::IsMember({by_formulas, "programs"}))
      ->capture_default_str();
}

std::shared_ptr<sim::CoreProgramTimer> programs_for(const std::string& times, const sim::Machine& machine) {
  if (times == by_formulas) return nullptr;
  auto programs = std::make_shared<sim::CoreProgramTimer>(sim::chip_of(machine), sim::times_folder());
  if (const std::string damage = programs->damage(); !damage.empty()) ccl::tell("trellis: {}\n", damage);
  return programs;
}

}  // namespace trellis::tools
