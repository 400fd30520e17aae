#include "sim/hands.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace trellis::sim {
namespace {

TEST(Hands, EachDoesItsPartOfEveryRound) {
  for (const int count : {1, 2, 5}) {
    Hands hands(count);
    std::vector<int> done(static_cast<std::size_t>(count));
    for (int round = 1; round <= 1000; ++round) {
      hands.run([&](int hand) { done[static_cast<std::size_t>(hand)] += hand + 1; });
      for (int hand = 0; hand < count; ++hand) ASSERT_EQ(done[static_cast<std::size_t>(hand)], (hand + 1) * round);
    }
  }
}

TEST(Hands, WhatOneThrowsIsThrownOnceAndTheNextRoundGoesOn) {
  Hands hands(3);
  for (int thrower = 0; thrower < 3; ++thrower) {
    const auto fail = [&](int hand) {
      if (hand == thrower) throw std::runtime_error("a hand slipped");
    };
    EXPECT_THROW(hands.run(fail), std::runtime_error);
    EXPECT_NO_THROW(hands.run([](int) {}));
  }
}

}  // namespace
}  // namespace trellis::sim
