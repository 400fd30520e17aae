// From a command line to an exit status: parses, suggests, runs, and turns exceptions into a one-line message.
#pragma once

#include <string>
#include <vector>

#include "tools/program/command.h"

namespace trellis::tools {

// 0: done. 1: the answer is no, or the system failed (a file, a full disk). 2: the command line is wrong.
int run(const std::vector<Command>& commands, const std::string& version, const std::vector<std::string>& arguments);

}  // namespace trellis::tools
