// One rank's process: its environment, its place, its pipes.
#pragma once

#include <sys/types.h>

#include <vector>

#include "ccl/rendezvous/socket.h"
#include "tools/launch_ranks.h"

namespace trellis::tools {

struct StartedRank {
  pid_t pid = -1;
  ccl::Descriptor output, errors;  // the ends to read; empty when the rank writes by itself
};

// Where it runs.
struct RankPlace {
  std::vector<int> threads = {};  // by the operating system's numbers; empty: any
  int cores = 1;                  // that it has for itself
};

// Throws system_error when the program cannot be executed.
StartedRank start_rank(const LaunchedJob&, int local_rank, const RankPlace&);

// Ends every process below this one, those that ranks left behind included. It must be their reaper (prctl(2),
// PR_SET_CHILD_SUBREAPER).
void sweep_processes();

}  // namespace trellis::tools
