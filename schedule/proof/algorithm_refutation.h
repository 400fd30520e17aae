// Proves an algorithm's schedules for callers that never build them in full. The simulator asks for this before it
// names an algorithm for a machine of 100,000 ranks.
#pragma once
#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {

class RefutedAlgorithm : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// What is wrong with the algorithm's schedules for such requests, in words; empty: its schedule was proved. A request
// for up to 32 ranks is proved as it is. A larger one is proved on the small form of its machine; if there is none, as
// it is, up to 1,024 ranks. At most two channels and three segments are proved where the algorithm allows so few. What
// can't be proved counts as wrong. A proof takes milliseconds; its answer is kept, by the algorithm's name and code,
// for all requests that are proved on the same form. Thread-safe.
std::string refutation(const Algorithm&, const Request&);

}  // namespace trellis::schedule
