// Dependencies found by HazardTracker, against a simple model of single cells.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "schedule/builder/hazard_tracker.h"

namespace trellis::schedule {
namespace {

using Waits = std::vector<std::int32_t>;

struct Cell {
  std::int32_t writer = -1;
  Waits readers = {};
};

// The steps that a step must wait for; updates the model's cells.
std::set<std::int32_t> obvious(std::vector<Cell>& cells, HazardTracker::Run run, bool writes, std::int32_t step) {
  std::set<std::int32_t> waits;
  for (auto i = run.first; i < run.first + run.count; ++i) {
    Cell& cell = cells[static_cast<std::size_t>(i)];
    bool read = false;
    if (writes)
      for (const std::int32_t reader : cell.readers)
        if (reader != step) waits.insert(reader), read = true;
    if (!read && cell.writer >= 0) waits.insert(cell.writer);
    if (writes)
      cell = {.writer = step};
    else
      cell.readers.push_back(step);
  }
  return waits;
}

void expect_known(const HazardTracker& hazards, const std::vector<Cell>& cells, HazardTracker::Run run) {
  std::vector<bool> unwritten(cells.size());
  for (const auto& part : hazards.unwritten(run))
    for (auto i = part.first; i < part.first + part.count; ++i) unwritten[static_cast<std::size_t>(i)] = true;
  std::int64_t written = 0;
  for (auto i = static_cast<std::size_t>(run.first); i < static_cast<std::size_t>(run.first + run.count); ++i) {
    ASSERT_EQ(unwritten[i], cells[i].writer < 0) << i;
    written += cells[i].writer < 0 ? 0 : 1;
  }
  ASSERT_EQ(hazards.written(run) == HazardTracker::Written::none, written == 0);
  ASSERT_EQ(hazards.written(run) == HazardTracker::Written::all, written == run.count);
}

// Runs begin anywhere, or, in every second round, are equally long and begin at multiples of their length, so that many
// coincide. Short runs cut the cells into more pieces than a block holds.
TEST(HazardTracker, AreThoseOfEachCell) {
  constexpr std::int64_t all = 3000;
  for (int round = 0; round < 60; ++round) {
    std::mt19937 random(static_cast<std::uint32_t>(round));
    const auto below = [&](std::int64_t limit) { return static_cast<std::int64_t>(random()) % limit; };
    const std::int64_t longest = round % 3 == 0 ? 600 : round % 3 == 1 ? 3 : 30;
    const auto some = [&]() -> HazardTracker::Run {
      if (round % 2 == 0) return {below(all - longest), 1 + below(longest)};
      return {below(all / longest) * longest, longest};
    };
    HazardTracker hazards;
    std::vector<Cell> cells(all);
    for (std::int32_t step = 0; step < 600; ++step) {
      Waits after;
      std::set<std::int32_t> expected;
      for (auto touched = below(3); touched >= 0; --touched) {
        const HazardTracker::Run run = some();
        const bool writes = random() % 2 == 0;
        writes ? hazards.write(run, step, after) : hazards.read(run, step, after);
        expected.merge(obvious(cells, run, writes, step));
      }
      ASSERT_EQ(std::set<std::int32_t>(after.begin(), after.end()), expected) << round << " " << step;
      ASSERT_NO_FATAL_FAILURE(expect_known(hazards, cells, some())) << round << " " << step;
    }
  }
}

}  // namespace
}  // namespace trellis::schedule
