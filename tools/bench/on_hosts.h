// trellis bench --hosts: the same benchmark, launched on several hosts.
#pragma once

#include "tools/bench/options.h"

namespace trellis::tools {

// The exit status. Throws invalid_argument, naming the flag and what was expected.
int bench_on_hosts(BenchOptions);

}  // namespace trellis::tools
