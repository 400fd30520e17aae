// The ranks of a measurement: processes or threads started for it, or this process as a rank of a launched job.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "ccl/store.h"

namespace trellis::launch {

inline constexpr int most_ranks_started = 1024;  // on this host

struct RankContext {
  int rank = 0;
  int ranks = 1;
  std::shared_ptr<ccl::Store> store;
  std::string transport;  // the transport that the ranks need; empty: any
  int thread = -1;        // hardware thread that this rank is pinned to; -1: none
  std::string by;         // the launcher of the job; empty: the ranks were started here
};

// The usual number of ranks: one for each core that this process may keep busy, and at least two.
int usual_ranks(int cores, double quota);

struct RankRunOptions {
  int ranks = 0;         // 0: as many as the job has; if started here, usual_ranks()
  bool threads = false;  // ranks are threads of one process
  bool pin = true;       // pin each rank to a core of its own, when there are enough and no quota says they are shared
  std::chrono::milliseconds timeout{30'000};
  // Whether a signal that the caller blocks has come. The ranks' processes then get SIGINT, which they inherit as
  // blocked, and are ended a while after rank 0 or any that failed. Null: signals end this process, and with it theirs.
  std::function<bool()> interrupted = {};
};

// Runs the work on every rank that belongs to this process, and returns what the work of rank 0 (or of this rank)
// returned: 0 or 1. When ranks throw, rethrows the cause, not its consequences, after all ranks have ended. Ranks that
// are processes are forked, so the caller must have no other threads. Everything that was started has ended on return.
int run_on_ranks(const RankRunOptions&, const std::function<int(const RankContext&)>& work);

}  // namespace trellis::launch
