// Thrown by whoever makes a schedule with more ranks, steps or chunks than a Schedule or a Program can number. Who
// tries several algorithms leaves this one out.
#pragma once
#include <stdexcept>

namespace trellis::schedule {

class ScheduleTooLarge : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace trellis::schedule
