// trellis bench --on sim:MACHINE: the table of trellis bench, from the simulator.
#pragma once

#include <string>

#include "measure/settings.h"

namespace trellis::tools {

// `place`: "sim:trn2.48xlarge". Prints the table, writes the files that are asked for, and returns the exit status.
// When interrupted, gives the rows that are done and throws runtime_error. Throws invalid_argument for an unknown
// place, and for options that only a real run can serve.
int bench_on(const std::string& place, const measure::BenchSettings&);

}  // namespace trellis::tools
