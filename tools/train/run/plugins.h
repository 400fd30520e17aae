// Shared libraries that register models, update rules and schedules of the user's own.
#pragma once

#include <string>
#include <vector>

#include "tools/program/cli_app.h"

namespace trellis::tools {

void add_plugins(CLI::App&, std::vector<std::string>&);

// Call it before a configuration is read that names parts of theirs. Throws invalid_argument for a file that cannot be
// loaded, or that registers a name that is taken.
void load_plugins(const std::vector<std::string>&);

}  // namespace trellis::tools
