// Enumerates requests for tests: every registered algorithm, each of its collectives, reasonable shapes and values.
#pragma once
#include <functional>
#include <string>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {

struct Case {
  const Algorithm* algorithm = nullptr;
  Request request;
  std::string text() const;  // for messages
};

// All requests of at most `most_ranks` ranks that the algorithm does not refuse.
void each_case(const Algorithm&, Rank most_ranks, const std::function<void(const Case&)>& visit);
void each_case(Rank most_ranks, const std::function<void(const Case&)>& visit);

// How a rank's program differs from what symmetry_of() promises; empty if it does not.
std::string asymmetry(const Algorithm&, const Request&, const Schedule&);

}  // namespace trellis::schedule
