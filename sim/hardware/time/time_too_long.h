// Thrown where a time is longer than can be counted. Who tries several ways leaves out the one.
#pragma once

#include <stdexcept>

namespace trellis::sim {

class TimeTooLong : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace trellis::sim
