// From a command line to an exit status: parses, suggests, runs, and turns what is thrown into one line.
#pragma once

#include <string>
#include <vector>

#include "tools/command.h"

namespace trellis::tools {

// 0: done. 1: the answer is no, or the world failed (a file, a full disk). 2: the command line is wrong.
int run(const std::vector<Command>& commands, const std::string& version, const std::vector<std::string>& arguments);

}  // namespace trellis::tools
