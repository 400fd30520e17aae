// Thrown when a schedule would have more ranks, steps or chunks than a Schedule or a Program can number. A caller that
// tries several algorithms skips the one that throws it.
#pragma once
#include <stdexcept>

namespace trellis::schedule {

class ScheduleTooLarge : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace trellis::schedule
