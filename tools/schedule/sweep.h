// Proves every algorithm over a range of shapes, on all processors.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tools/schedule/request_options.h"

namespace trellis::tools {

// The sweep. Empty names mean all.
struct Sweep {
  std::string algorithm, collective;
  std::vector<schedule::Rank> ranks;
  unsigned threads = 1;
};

// The results of one algorithm for one collective.
struct Swept {
  std::string algorithm;
  schedule::Collective collective = schedule::Collective::all_reduce;
  std::int64_t proved = 0, refused = 0, failed = 0, folded = 0;
  std::string reason;  // the most common refusal
  std::int64_t steps = 0;
  double seconds = 0;  // of processor time
  std::vector<std::string> faults;
};

std::vector<std::vector<schedule::Rank>> shapes(schedule::Rank ranks);  // some shapes of so many ranks

// Calls progress(done, of) from time to time. The rows do not depend on the number of threads, except the seconds.
std::vector<Swept> sweep(const Sweep&, const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace trellis::tools
