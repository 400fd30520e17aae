#include "tools/program/shell.h"

int main(int argc, char** argv) {
  return trellis::tools::run(trellis::tools::commands(), TRELLIS_VERSION, {argv + 1, argv + argc});
}
