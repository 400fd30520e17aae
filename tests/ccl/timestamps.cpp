#include <gtest/gtest.h>

#include <thread>

#include "ccl/timestamp_clock.h"

namespace trellis::ccl {
namespace {

// A communicator, and with it this clock, may be created after the signal whose moment its dump describes.
TEST(TimestampClock, TellsOfMomentsBeforeItsOwn) {
  constexpr std::int64_t hour_ns = 3'600'000'000'000;
  const std::uint64_t before = TimestampClock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const TimestampClock clock;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::int64_t earlier = clock.since_epoch_ns(before), later = clock.since_epoch_ns(TimestampClock::now());
  EXPECT_LT(earlier, later);
  EXPECT_LT(later - earlier, hour_ns);
}

}  // namespace
}  // namespace trellis::ccl
