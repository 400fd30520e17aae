// The check of an option that names a command's output file.
#pragma once

#include "tools/program/cli_app.h"

namespace trellis::tools {

// Throws, before the command runs, what writing would throw if it could not even begin: see expect_writable().
const CLI::Validator& output_file();

}  // namespace trellis::tools
