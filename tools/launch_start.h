// One rank's process: its environment, its place, its pipes.
#pragma once

#include <sys/types.h>

#include "ccl/rendezvous/socket.h"
#include "tools/launch_ranks.h"

namespace trellis::tools {

struct StartedRank {
  pid_t pid = -1;
  ccl::Descriptor output, errors;  // the ends to read; empty when the rank writes by itself
};

// `core`: the hardware thread to run on, -1: any. Throws system_error when the program cannot be executed.
StartedRank start_rank(const LaunchedJob&, int local_rank, int core);

// Ends every process below this one, those that ranks left behind included. It must be their reaper (prctl(2),
// PR_SET_CHILD_SUBREAPER).
void sweep_processes();

}  // namespace trellis::tools
