// A communicator that is asked about itself while an operation runs in another thread.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "ccl/failure/flight_recorder.h"
#include "ccl/failure/rank_dump.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using kernels::DType;

constexpr std::uint64_t counts = 100;
std::uint64_t elements_of(std::uint64_t operation) { return operation % counts + 1; }

// The entries that the recorder had at one time, each of them whole.
void expect_of_one_time(const RankDump& dump) {
  for (const DumpedEntry& e : dump.entries)
    ASSERT_EQ(e.call, fmt::format("all_reduce of {} f32, sum", elements_of(e.operation)))
        << "operation " << e.operation;
  if (!dump.entries.empty()) {
    ASSERT_LT(dump.entries.back().operation - dump.entries.front().operation, FlightRecorder::kept);
  }
}

TEST(Readers, FindWholeEntriesWhileOperationsRun) {
  const auto c = Communicator::create(memory_store(), 0, 1, {.transport = "loopback"});
  std::atomic<bool> enough = false;
  std::thread other([&] {
    std::vector<float> data(counts + 1);
    while (!enough) c->all_reduce(data.data(), data.data(), elements_of(c->operations() + 1), DType::f32);
  });
  // Overtaken: dumps in whose time all entries were overwritten. A busy machine may have none for long.
  for (int overtaken = 0, dumps = 0; overtaken < 5 && dumps < 300; ++dumps) {
    const std::uint64_t before = c->operations();
    expect_of_one_time(rank_dump_in(c->dump()));
    overtaken += c->operations() - before > FlightRecorder::kept ? 1 : 0;
    EXPECT_GT(c->memory_bytes(), FlightRecorder().memory_bytes());
    EXPECT_FALSE(c->last().native);
  }
  enough = true;
  other.join();
  const RankDump last = rank_dump_in(c->dump());
  expect_of_one_time(last);
  EXPECT_EQ(last.entries.size(), FlightRecorder::kept);
}

TEST(Readers, DoNotFindAnEntryBeforeItIsShown) {
  FlightRecorder recorder;
  const auto entries = [&] {
    return rank_dump_in(recorder.dump({}, TimestampClock::now(), std::chrono::seconds(1))).entries.size();
  };
  recorder.begin().operation = 1;
  EXPECT_EQ(entries(), 0U);
  EXPECT_FALSE(recorder.collective(1));
  recorder.show();
  EXPECT_EQ(entries(), 1U);
  ASSERT_TRUE(recorder.collective(1));
  EXPECT_EQ(recorder.collective(1)->ended, 0U);
  recorder.end();
  EXPECT_NE(recorder.collective(1)->ended, 0U);
}

}  // namespace
}  // namespace trellis::ccl
