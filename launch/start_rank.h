// Starts one rank's process: its environment, its cores, its pipes.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <vector>

#include "launch/launch_ranks.h"
#include "net/descriptor.h"

namespace trellis::launch {

struct StartedRank {
  pid_t pid = -1;
  net::Descriptor output, errors;  // ends to read from; empty when the rank writes directly
};

// Where the rank runs.
struct RankPlace {
  std::vector<int> threads = {};  // by the operating system's numbers; empty: any
  int cores = 1;                  // number of cores that it has for itself
};

// Throws system_error when the program cannot be executed. `descriptors`: the limit that the rank gets.
StartedRank start_rank(const LaunchOptions&, int local_rank, const RankPlace&, const rlimit& descriptors);

// Ends every descendant of this process, including those that ranks left behind. The process must be their reaper
// (prctl(2), PR_SET_CHILD_SUBREAPER).
void sweep_processes();

}  // namespace trellis::launch
