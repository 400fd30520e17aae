// How long a waiting rank yields before it sleeps.
#include "ccl/transports/yield_budget.h"

#include <gtest/gtest.h>

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

// For how many turns a waiting rank yields, if each turn takes the time `each`.
std::uint32_t turns(YieldBudget& yielding, Clock::duration each, Deadline begun) {
  std::uint32_t turn = 0;
  while (turn < 10 * YieldBudget::most_turns && yielding.goes_on(turn, begun + turn * each)) ++turn;
  return turn;
}

TEST(YieldBudget, EndsAfterSomeTurnsOnACoreOfItsOwn) {
  YieldBudget yielding;
  EXPECT_EQ(turns(yielding, 1us, Deadline() + 1h), YieldBudget::most_turns);
}

TEST(YieldBudget, EndsEarlierWhereATurnTakesLong) {
  YieldBudget yielding;
  EXPECT_EQ(turns(yielding, 100us, Deadline() + 1h), 10U);
  EXPECT_EQ(turns(yielding, 7ms, Deadline() + 2h), 1U) << "64 ranks share two cores";
  EXPECT_EQ(turns(yielding, 1us, Deadline() + 3h), YieldBudget::most_turns) << "each wait counts anew";
}

TEST(YieldBudget, HasTheLimitsThatItIsGiven) {
  YieldBudget yielding(7, 20ms);
  EXPECT_EQ(turns(yielding, 1us, Deadline() + 1h), 7U);
  EXPECT_EQ(turns(yielding, 5ms, Deadline() + 2h), 4U);
}

TEST(YieldBudget, DoesNotGoOnOnceItHasEnded) {
  YieldBudget yielding;
  EXPECT_TRUE(yielding.goes_on(0, Deadline() + 1h));
  EXPECT_FALSE(yielding.goes_on(1, Deadline() + 2h));
  EXPECT_FALSE(yielding.goes_on(2, Deadline() + 2h));
}

}  // namespace
}  // namespace trellis::ccl
