#include "tools/program/output_option.h"

#include <CLI/CLI.hpp>

#include "tools/program/output.h"

namespace trellis::tools {

const CLI::Validator& output_file() {
  static const CLI::Validator check(cli11::Validator(
      [](std::string& path) {
        expect_writable(path);
        return std::string();
      },
      ""));
  return check;
}

}  // namespace trellis::tools
