// Thrown where a time is longer than can be counted. A caller that tries several candidates leaves this one out.
#pragma once

#include <stdexcept>

namespace trellis::sim {

class TimeTooLong : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace trellis::sim
