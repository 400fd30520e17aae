// --times: whether operations are timed by formulas or by programs of sim/core.
#pragma once

#include <memory>
#include <string>

#include "sim/cluster/operation/core_program_timer.h"
#include "tools/program/command.h"

namespace trellis::tools {

inline constexpr const char* by_formulas = "formulas";

void add_times_option(CLI::App&, std::string& times);
// Null if formulas time all operations. Reports a damaged file of kept times on standard error.
std::shared_ptr<sim::CoreProgramTimer> programs_for(const std::string& times, const sim::Machine&);

}  // namespace trellis::tools
