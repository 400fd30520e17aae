// Limits on the memory and work of a proof. A schedule from outside can claim sizes that fit in no memory and
// dependencies too many to follow; such a schedule is refused with the limit that it exceeds.
#pragma once
#include <cstdint>

namespace trellis::schedule {

struct ProofLimits {
  std::int64_t cells = std::int64_t{1} << 26;  // memory chunks of all ranks together
  std::int64_t work = std::int64_t{1} << 30;   // in units of Work
};

// A budget of work. The unit is a touch: one chunk read or written, a few nanoseconds.
class Work {
 public:
  struct Spent {};  // thrown when the budget is used up

  static constexpr std::int64_t touch = 1, wait = 2, term = 4, sum = 16;  // cost of each, in touches
  explicit Work(std::int64_t most) : left_(most) {}

  void spend(std::int64_t touches) {
    left_ -= touches;
    if (left_ < 0) throw Spent{};
  }

 private:
  std::int64_t left_;
};

}  // namespace trellis::schedule
