// The ranks of a measurement: processes or threads that are started for it, or this process as one of a launched job.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "ccl/store.h"

namespace trellis::tools {

inline constexpr int most_ranks_started = 1024;  // here

struct Crew {
  int rank = 0;
  int ranks = 1;
  std::shared_ptr<ccl::Store> store;
  std::string transport;  // that they need; empty: any
  int thread = -1;        // of the hardware, that this rank is kept on; -1: none in particular
  std::string by;         // who launched the job; empty: the ranks were started here
};

struct CrewWish {
  int ranks = 0;         // 0: as many as the job has; started here, one for each core and at least two
  bool threads = false;  // of one process
  bool pin = true;       // each to a core of its own, when there are enough
  std::chrono::milliseconds timeout{30'000};
};

// Runs the work on every rank that is this process's to run, and returns what rank 0's (or this rank's) work returned:
// 0 or 1. What one of them throws comes out of here once all have ended: the cause, not its consequences. Ranks that
// are processes are forked, so the caller must have no threads; none is left of what was started.
int run_crew(const CrewWish&, const std::function<int(const Crew&)>& work);

}  // namespace trellis::tools
