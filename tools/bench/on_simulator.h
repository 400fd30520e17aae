// trellis bench --on sim:MACHINE: the table of trellis bench, from the simulator.
#pragma once

#include "tools/bench/options.h"

namespace trellis::tools {

// Prints the table, writes the files that are asked for, and returns the exit status. When interrupted, gives the rows
// that are done and throws runtime_error. Throws invalid_argument for an unknown place, and for options that only a
// real run can serve.
int bench_on(const BenchOptions&);

}  // namespace trellis::tools
