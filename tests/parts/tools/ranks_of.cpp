// trellis ranks: how many ranks a shape has.
#include <fmt/format.h>

#include "tools/program/command.h"
#include "tools/program/output.h"

namespace trellis::tools {
namespace {

struct Options {
  int width = 1, height = 1;
};

void add(CLI::App& app, Options& o) {
  app.add_option("width", o.width, "Ranks in a row")->required();
  app.add_option("height", o.height, "Rows")->required();
}

int run(const Options& o) {
  write_output("", fmt::format("{} ranks\n", o.width * o.height));
  return 0;
}

const RegisteredCommand ranks_command("ranks", "Tells how many ranks a rectangle has", "trellis ranks 4 8", add, run);

}  // namespace
}  // namespace trellis::tools
