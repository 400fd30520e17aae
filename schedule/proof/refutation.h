// Whether an algorithm's schedules may be used where nobody writes them out. The simulator asks this before it names an
// algorithm for a machine of 100,000 ranks.
#pragma once
#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {

class RefutedAlgorithm : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// What is wrong with the algorithm's schedules for requests of this form, in words; empty: its schedule was proved, for
// this very request up to 32 ranks, and else on the small form of the machine, with at most two channels and three
// segments. What can be proved on neither counts as wrong. A proof takes milliseconds, and answers all requests that
// are proved on the same form: the answer is kept, by the algorithm's name and code. Thread-safe.
std::string refutation(const Algorithm&, const Request&);

}  // namespace trellis::schedule
