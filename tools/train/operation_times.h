// --times: which of the two ways to an operation's time is taken.
#pragma once

#include <memory>
#include <string>

#include "sim/cluster/operation/program_times.h"
#include "tools/program/command.h"

namespace trellis::tools {

inline constexpr const char* by_formulas = "formulas";

void add_times_option(CLI::App&, std::string& times);
// Null: formulas alone. Tells of a damaged file of kept times.
std::shared_ptr<sim::ProgramTimes> programs_for(const std::string& times, const sim::Machine&);

}  // namespace trellis::tools
