// Commands that the Python package implements: the program execs a Python interpreter that has the package.
#pragma once

#include <string>
#include <vector>

namespace trellis::tools {

// TRELLIS_PYTHON, or the first python3 or python of PATH that has trellis and `packages`; empty, where there is none.
// A package of a build tree that has `command` is found, too.
std::string python_with(const std::string& command, const std::vector<std::string>& packages);

// What to do where there is none; pip installs the packages as trellis[EXTRA].
std::string missing_words(const std::string& extra, const std::vector<std::string>& packages);

// Runs `python -m trellis.COMMAND` with the words after the command as they were typed, in place of this process, with
// the interpreter that python_with() finds. Returns only where there is none: prints what is missing, and returns 2.
int run_python_command(const std::string& command, const std::string& extra, const std::vector<std::string>& packages);

}  // namespace trellis::tools
