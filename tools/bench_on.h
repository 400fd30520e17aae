// trellis bench --on sim:MACHINE: its table from the simulator.
#pragma once

#include <string>

#include "tools/bench_settings.h"

namespace trellis::tools {

// `place`: "sim:trn2.48xlarge". Prints the table and writes the files that are asked for; returns the exit status.
// Interrupted it gives the rows that are done, and throws runtime_error.
// Throws invalid_argument for what is no such place, and for what only a run for real can give.
int bench_on(const std::string& place, const BenchSettings&);

}  // namespace trellis::tools
