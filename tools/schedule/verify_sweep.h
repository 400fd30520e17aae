// Proves every algorithm over a range of shapes, on all processors.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tools/schedule/request_options.h"

namespace trellis::tools {

// The sweep. Empty names mean all.
struct VerifySweepOptions {
  std::string algorithm, collective;
  std::vector<schedule::Rank> ranks;
  unsigned threads = 1;
};

// The results of one algorithm for one collective.
struct VerifySweepResult {
  std::string algorithm;
  schedule::Collective collective = schedule::Collective::all_reduce;
  std::int64_t proved = 0, refused = 0, failed = 0, folded = 0;
  std::int64_t elsewhere = 0;  // in shapes of which the algorithm refuses even the plain request
  std::int64_t undone = 0;     // not tried, as the sweep was interrupted
  std::string reason;          // the most common one of those counted in refused and elsewhere
  std::int64_t steps = 0;
  double seconds = 0;  // of processor time
  std::vector<std::string> faults;
};

std::vector<std::vector<schedule::Rank>> shapes(schedule::Rank ranks);  // some shapes of so many ranks

// Calls progress(done, of) from time to time, and ends early when that returns false. The rows do not depend on the
// number of threads, except the seconds.
std::vector<VerifySweepResult> sweep(const VerifySweepOptions&,
                                     const std::function<bool(std::size_t, std::size_t)>& progress);

}  // namespace trellis::tools
