// Shared libraries that register models, update rules and schedules of the user's own.
#pragma once

#include <string>
#include <vector>

#include "tools/program/cli_app.h"

namespace trellis::tools {

void add_plugins(CLI::App&, std::vector<std::string>&);

// Before a configuration that names what is in them is read. Throws invalid_argument: a file that cannot be loaded, or
// registers what there is already.
void load_plugins(const std::vector<std::string>&);

}  // namespace trellis::tools
