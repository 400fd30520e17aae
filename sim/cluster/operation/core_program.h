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
  std::string grows;         // the parameter of which the program repeats the same for more
  std::uint64_t extent = 1;  // of it
  // Larger ones are not simulated: of so many, the second half's time is repeated. An even number of repetitions.
  std::uint64_t most = 1;
  double times = 1;  // that it is run, one after the other
  // What the program does. What else the operation asks for is added as the formulas have it.
  schedule::OperationShape does;
};

}  // namespace trellis::sim
