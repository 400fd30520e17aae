// Which token is drawn: the most probable one, or one of those that top-k and top-p leave, as often as it is probable.
#include "train/whole/token_sampling.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "tests/why.h"

namespace trellis::train {
namespace {

constexpr std::array<float, 5> logits{1, 3, 2, 3, -1};

std::map<std::int32_t, int> drawn(const SamplingOptions& s, int times) {
  std::map<std::int32_t, int> counts;
  for (int i = 0; i < times; ++i) ++counts[chosen_token(logits, s, static_cast<std::uint64_t>(i))];
  return counts;
}

TEST(SamplingOptions, OfEqualLogitsTheFirstIsTakenWithoutTemperature) {
  EXPECT_EQ(chosen_token(logits, {}, 0), 1);
  EXPECT_EQ(chosen_token(logits, {.temperature = 5, .top_k = 1}, 7), 1);
}

TEST(SamplingOptions, TokensComeAsOftenAsTheyAreProbable) {
  constexpr int times = 20'000;
  for (double temperature : {0.5, 1.0, 3.0}) {
    double sum = 0;
    for (float l : logits) sum += std::exp(static_cast<double>(l) / temperature);
    const auto counts = drawn({.temperature = temperature}, times);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double p = std::exp(static_cast<double>(logits[i]) / temperature) / sum;
      const auto found = counts.find(static_cast<std::int32_t>(i));
      EXPECT_NEAR(found == counts.end() ? 0 : found->second / static_cast<double>(times), p, 0.015) << i;
    }
  }
}

TEST(SamplingOptions, TopKAndTopPLeaveTheMostProbable) {
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 2}, 400).size(), 2U);
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 3}, 400).size(), 3U);
  // Probabilities 0.4, 0.4, 0.15, ...: two of them are enough for 0.75, three for 0.85.
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.75}, 400).size(), 2U);
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.85}, 400).size(), 3U);
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.01}, 400).size(), 1U);
}

TEST(SamplingOptions, TheSeedDecides) {
  const SamplingOptions s{.temperature = 2};
  EXPECT_EQ(drawn(s, 100), drawn(s, 100));
  EXPECT_NE(drawn(s, 100), drawn({.temperature = 2, .seed = 5}, 100));
}

TEST(SamplingOptions, WhatCannotBeMeantIsRefused) {
  EXPECT_EQ(why([] { SamplingOptions{.temperature = -1}.check(); }), "temperature is -1: expected a number, 0 or more");
  EXPECT_EQ(why([] { SamplingOptions{.top_p = 1.5}.check(); }), "top-p is 1.5: expected more than 0, to 1");
}

}  // namespace
}  // namespace trellis::train
