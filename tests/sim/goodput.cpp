#include "sim/cluster/workload/goodput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace trellis::sim {
namespace {

TEST(Goodput, NothingIsLostWithoutFailuresButTheSaving) {
  EXPECT_NEAR(goodput({.between = 1e12, .interval = 600, .save = 60}), 600.0 / 660, 1e-6);
}

// Compares the formula with a simulation of random failures.
TEST(Goodput, IsWhatDrawnFailuresLeave) {
  const GoodputInputs f{.between = 7200, .interval = 900, .save = 30, .restart = 300};
  std::mt19937_64 random(7);
  std::exponential_distribution<double> next(1 / f.between);
  double time = 0, useful = 0, failure = next(random);
  while (time < 4e8) {
    if (time + f.interval + f.save <= failure) {
      time += f.interval + f.save, useful += f.interval;
    } else {
      // A restart may fail as well: then it begins anew.
      time = failure;
      for (failure = time + next(random); time + f.restart > failure; failure = time + next(random)) time = failure;
      time += f.restart;
    }
  }
  EXPECT_NEAR(goodput(f), useful / time, 0.01);
}

TEST(Goodput, TheBestIntervalIsBetterThanItsNeighboursAndAboutYoungs) {
  GoodputInputs f{.between = 50 * 3600, .save = 60, .restart = 600};
  const double best = best_interval(f);
  EXPECT_NEAR(best, std::sqrt(2 * f.save * f.between), 0.05 * best);
  const auto at = [&](double interval) {
    f.interval = interval;
    return goodput(f);
  };
  EXPECT_GE(at(best), at(best * 1.1));
  EXPECT_GE(at(best), at(best / 1.1));
}

}  // namespace
}  // namespace trellis::sim
