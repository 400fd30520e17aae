// Pipeline schedules, run with simulated messages: they end, with the bubble and the memory that theory states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "train/pipeline/schedule.h"
#include "train/pipeline/simulate.h"

namespace trellis::train {
namespace {

std::string computations(const PipelineSchedule& s, std::size_t rank) {
  std::string text;
  for (const Slot& slot : s.ranks[rank])
    if (computes(slot.action))
      text += (slot.action == Action::forward    ? "F"
               : slot.action == Action::backward ? "B"
                                                 : "W") +
              std::to_string(slot.micro);
  return text;
}

// Whether to try all P to 32, V to 4 and M to 128, as tools/soak asks for by TRELLIS_PIPELINE_SWEEP.
bool whole_sweep() { return std::getenv("TRELLIS_PIPELINE_SWEEP") != nullptr; }

std::vector<std::int32_t> numbers(std::int32_t most, std::vector<std::int32_t> some) {
  if (!whole_sweep()) return some;
  std::vector<std::int32_t> all;
  for (std::int32_t i = 1; i <= most; ++i) all.push_back(i);
  return all;
}

TEST(Pipeline, OneFOneBOfFourRanks) {
  const PipelineSchedule s = pipeline_schedule("1f1b", {4, 1, 6});
  EXPECT_EQ(computations(s, 0), "F0F1F2F3B0F4B1F5B2B3B4B5");
  EXPECT_EQ(computations(s, 1), "F0F1F2B0F3B1F4B2F5B3B4B5");
  EXPECT_EQ(computations(s, 2), "F0F1B0F2B1F3B2F4B3F5B4B5");
  EXPECT_EQ(computations(s, 3), "F0B0F1B1F2B2F3B3F4B4F5B5");
}

TEST(Pipeline, EveryScheduleEndsUnderRendezvousAndWithBuffers) {
  int made = 0;
  for (const auto& [name, rule] : pipeline_rules())
    for (std::int32_t ranks : numbers(32, {1, 2, 3, 4, 5, 8, 13, 32}))
      for (std::int32_t chunks : numbers(4, {1, 2, 3, 4}))
        for (std::int32_t micro : numbers(128, {1, 2, 3, 4, 7, 8, 16, 26, 64})) {
          const PipelineShape shape{ranks, chunks, micro};
          if (!rule.misfit(shape).empty()) continue;
          const PipelineSchedule s = pipeline_schedule(rule.name, shape);
          for (MessageMode m : {MessageMode::rendezvous, MessageMode::buffered})
            ASSERT_EQ(simulate(s, {}, m).fault, "") << rule.name << " P" << ranks << " V" << chunks << " M" << micro;
          ++made;
        }
  EXPECT_GT(made, 150);
}

TEST(Pipeline, OneFOneBTakesThreeTimesItsPasses) {
  for (const auto& [ranks, micro] : {std::pair{4, 8}, {8, 32}, {3, 5}, {16, 16}}) {
    const PipelineTiming t = simulate(pipeline_schedule("1f1b", {ranks, 1, micro}));
    EXPECT_EQ(t.end, 3 * (micro + ranks - 1));
    EXPECT_DOUBLE_EQ(t.bubble(), static_cast<double>(ranks - 1) / micro);
    for (std::int32_t r = 0; r < ranks; ++r) EXPECT_EQ(t.live[static_cast<std::size_t>(r)], std::min(ranks - r, micro));
  }
  EXPECT_EQ(simulate(pipeline_schedule("1f1b", {4, 1, 8})).end, 33);
  EXPECT_EQ(simulate(pipeline_schedule("1f1b", {8, 1, 32})).end, 117);
}

// One stage takes 1 unit a pass and another 3: the long one sets the pace, and the short one waits for two of three
// units.
TEST(Pipeline, UnevenStagesIdleMore) {
  const StageCosts one{1, 1, 1}, three{3, 3, 3};
  const PipelineSchedule s = pipeline_schedule("1f1b", {2, 1, 8});
  const PipelineTiming t = simulate_uneven(s, {one, three}, MessageMode::buffered);
  EXPECT_EQ(t.busy, (std::vector<std::int64_t>{3 * 8, 9 * 8}));
  EXPECT_EQ(t.end, 1 + 9 * 8 + 2) << "the first stage's first forward and last backward pass are beside nothing";
  EXPECT_DOUBLE_EQ(t.bubble(), (2.0 * 75 - 96) / 96);
  EXPECT_DOUBLE_EQ(simulate_uneven(s, {three, three}, MessageMode::buffered).bubble(), 1.0 / 8);
  EXPECT_THROW(simulate_uneven(s, {one}, MessageMode::buffered), std::invalid_argument);
}

TEST(Pipeline, InterleavingDividesTheBubble) {
  // A chunk's passes take 1 and 2 units, those of a rank's V chunks together V and 2 V. Divided by V, the times are
  // those of ranks whose passes take 1 and 2.
  const auto end = [](std::int32_t ranks, std::int32_t chunks, std::int32_t micro) {
    return static_cast<double>(
               simulate(pipeline_schedule("interleaved", {ranks, chunks, micro}), {}, MessageMode::buffered).end) /
           chunks;
  };
  EXPECT_DOUBLE_EQ(end(4, 2, 8), 28.5);
  EXPECT_DOUBLE_EQ(end(4, 4, 8), 26.25);
  EXPECT_DOUBLE_EQ(end(8, 2, 32), 106.5);
  EXPECT_DOUBLE_EQ(end(8, 4, 64), 197.25);
  EXPECT_EQ(simulate(pipeline_schedule("interleaved", {4, 2, 8})).live, (std::vector<std::int32_t>{11, 9, 7, 5}));
}

TEST(Pipeline, GpipeKeepsEverythingAlive) {
  const PipelineTiming t = simulate(pipeline_schedule("gpipe", {4, 1, 8}));
  EXPECT_EQ(t.end, 3 * (8 + 3));
  EXPECT_EQ(t.live, (std::vector<std::int32_t>{8, 8, 8, 8}));
}

TEST(Pipeline, ZeroBubbleH1LeavesAThirdOfTheBubble) {
  for (const auto& [ranks, micro] : {std::pair{4, 8}, {8, 32}, {16, 16}, {32, 64}}) {
    const PipelineTiming t = simulate(pipeline_schedule("zb-h1", {ranks, 1, micro}), {}, MessageMode::buffered);
    EXPECT_EQ(t.end, 3 * micro + ranks - 1);
    EXPECT_LE(*std::ranges::max_element(t.live), ranks);
  }
}

TEST(Pipeline, ZeroBubbleVIdlesForLittleMoreThanTheWayDown) {
  // A rank has two chunks, so a unit of time is half of its forward pass. The last rank begins ranks - 1 units after
  // the first one, or later.
  for (const auto& [ranks, micro] : {std::pair{4, 8}, {4, 16}, {8, 32}, {16, 64}}) {
    const PipelineTiming t = simulate(pipeline_schedule("zb-v", {ranks, 2, micro}), {}, MessageMode::buffered);
    EXPECT_GE(t.end, 6 * micro + ranks - 1);
    EXPECT_LE(t.end, 6 * micro + 2 * ranks - 1);
    EXPECT_LT(t.end, 2 * simulate(pipeline_schedule("zb-h1", {ranks, 1, micro}), {}, MessageMode::buffered).end);
    EXPECT_LE(*std::ranges::max_element(t.live), 2 * ranks);
  }
}

TEST(Pipeline, DamageIsNoticed) {
  // A slot of a rank is taken away: a pass is missing, or one end of a message.
  std::mt19937 random(5);
  int caught = 0;
  for (const char* rule : {"1f1b", "zb-h1", "gpipe"})
    for (int i = 0; i < 200; ++i) {
      PipelineSchedule s = pipeline_schedule(rule, {4, 1, 6});
      auto& slots = s.ranks[random() % 4];
      slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(random() % slots.size()));
      caught += !simulate(s).fault.empty();
    }
  EXPECT_EQ(caught, 600);
  PipelineSchedule s = pipeline_schedule("1f1b", {2, 1, 2});
  std::swap(s.ranks[0][3], s.ranks[0][4]);  // the forward message before the gradient: both ranks send
  EXPECT_NE(simulate(s).fault, "");
}

TEST(Pipeline, RefusesWhatDoesNotFit) {
  EXPECT_THROW(pipeline_schedule("1f1b", {4, 2, 8}), std::invalid_argument);
  EXPECT_THROW(pipeline_schedule("interleaved", {4, 2, 6}), std::invalid_argument);
  EXPECT_THROW(pipeline_schedule("zb-v", {4, 1, 8}), std::invalid_argument);
  EXPECT_THROW(pipeline_schedule("chimera", {4, 1, 8}), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::train
