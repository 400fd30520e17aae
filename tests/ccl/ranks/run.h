// Runs a function on every rank of a communicator: ranks are threads over loopback, or processes over shared memory.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ccl/communicator.h"

namespace trellis::ccl {

// What a rank's function may say when it is done: empty is well. What it throws comes back as text.
using RankFunction = std::function<void(Communicator&)>;

// Empty when every rank ended well; else a line for each that did not.
std::string run_threads(Rank ranks, const RankFunction&, const Config& = {});
// Processes that are stopped once all others have ended are killed when nobody has continued them for so long.
std::string run_processes(Rank ranks, const RankFunction&, const Config& = {}, std::chrono::milliseconds stopped = {});

inline std::string run_ranks(std::string_view transport, Rank ranks, const RankFunction& f, const Config& c = {}) {
  return transport == "loopback" ? run_threads(ranks, f, c) : run_processes(ranks, f, c);
}

}  // namespace trellis::ccl
