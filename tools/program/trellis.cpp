#include <fcntl.h>

#include "tools/program/shell.h"

namespace {

// Where standard input, output or error are closed, the next file that is opened would take the number, and a message
// would be written into it. What takes it instead cannot be read or written, so that the error is the same.
void keep_standard_numbers() {
  for (int number = 0; number <= 2; ++number)
    if (fcntl(number, F_GETFD) < 0) open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY);
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_numbers();
  return trellis::tools::run(trellis::tools::commands(), TRELLIS_VERSION, {argv + 1, argv + argc});
}
