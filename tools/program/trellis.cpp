#include <fcntl.h>

#include "tools/program/run_command_line.h"

namespace {

// If standard input, output or error is closed, the next file that is opened would get its number, and messages would
// be written into that file. /dev/null takes the number, opened so that using it fails as before.
void keep_standard_numbers() {
  for (int number = 0; number <= 2; ++number)
    if (fcntl(number, F_GETFD) < 0) open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY);
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_numbers();
  return trellis::tools::run(trellis::tools::commands(), TRELLIS_VERSION, {argv + 1, argv + argc});
}
