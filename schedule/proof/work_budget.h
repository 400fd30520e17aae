// What a proof may cost, and has cost.
#pragma once
#include <cstdint>

namespace trellis::schedule {

// A budget of work. The unit is a touch: one chunk read or written, a few nanoseconds.
class WorkBudget {
 public:
  struct Spent {};  // thrown when the budget is used up

  static constexpr std::int64_t touch = 1, wait = 2, term = 4, sum = 16;  // cost of each, in touches
  explicit WorkBudget(std::int64_t most) : left_(most) {}

  void spend(std::int64_t touches) {
    left_ -= touches;
    if (left_ < 0) throw Spent{};
  }

 private:
  std::int64_t left_;
};

}  // namespace trellis::schedule
