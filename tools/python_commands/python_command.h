// Commands that the Python package answers: the program hands over to an interpreter that has it.
#pragma once

#include <string>
#include <vector>

namespace trellis::tools {

// Runs `python -m trellis.COMMAND` with the words after the command as they were typed, in place of this process. The
// interpreter is TRELLIS_PYTHON, or the first python3 or python of PATH that has trellis and `packages`, which pip
// installs as trellis[EXTRA]. Returns only where there is none: prints what is missing, and returns 2.
int run_python_command(const std::string& command, const std::string& extra, const std::vector<std::string>& packages);

}  // namespace trellis::tools
