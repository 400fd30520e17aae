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
  // The largest extent that is simulated. For a larger one, the time of its second half is repeated: so it is an even
  // number of repetitions.
  std::uint64_t most = 1;
  double times = 1;  // how often the program runs, one run after the other
  // What the program does. What else the operation asks for is added as the formulas have it.
  schedule::OperationShape does;
};

}  // namespace trellis::sim
