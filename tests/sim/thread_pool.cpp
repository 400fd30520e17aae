#include "sim/hardware/thread_pool.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace trellis::sim {
namespace {

TEST(ThreadPool, EachDoesItsPartOfEveryRound) {
  for (const int count : {1, 2, 5}) {
    ThreadPool pool(count);
    std::vector<int> done(static_cast<std::size_t>(count));
    for (int round = 1; round <= 1000; ++round) {
      pool.run([&](int worker) { done[static_cast<std::size_t>(worker)] += worker + 1; });
      for (int worker = 0; worker < count; ++worker)
        ASSERT_EQ(done[static_cast<std::size_t>(worker)], (worker + 1) * round);
    }
  }
}

TEST(ThreadPool, WhatOneThrowsIsThrownOnceAndTheNextRoundGoesOn) {
  ThreadPool pool(3);
  for (int thrower = 0; thrower < 3; ++thrower) {
    const auto fail = [&](int worker) {
      if (worker == thrower) throw std::runtime_error("a hand slipped");
    };
    EXPECT_THROW(pool.run(fail), std::runtime_error);
    EXPECT_NO_THROW(pool.run([](int) {}));
  }
}

}  // namespace
}  // namespace trellis::sim
