// A program of core/ that does an operation, and how it is timed where it is large.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schedule/graph/operation_shape.h"

namespace trellis::sim {

struct CoreProgram {
  std::string name;
  std::vector<std::pair<std::string, std::string>> parameters;  // all but the next one
  std::string grows;         // the parameter with which the program grows: a larger one repeats the same work
  std::uint64_t extent = 1;  // its value
  // The largest extent that is simulated. Beyond it, the time grows at the rate of this extent's second half: half of
  // it is simulated as well, so it must be an even number of repetitions.
  std::uint64_t most = 1;
  double times = 1;  // how often the program runs, one run after the other
  // The part of the operation that the program covers. The time of the rest is estimated by formulas and added.
  schedule::OperationShape does;
};

}  // namespace trellis::sim
