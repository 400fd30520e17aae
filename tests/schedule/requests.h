// Requests that tests walk: every registered algorithm, every collective it serves, sensible shapes and values.
#pragma once
#include <functional>
#include <string>

#include "schedule/algorithm.h"

namespace trellis::schedule {

struct Case {
  const Algorithm* algorithm = nullptr;
  Request request;
  std::string text() const;  // for messages
};

// All that the algorithm does not refuse, of at most `most_ranks` ranks.
void each_case(const Algorithm&, Rank most_ranks, const std::function<void(const Case&)>& visit);
void each_case(Rank most_ranks, const std::function<void(const Case&)>& visit);

}  // namespace trellis::schedule
