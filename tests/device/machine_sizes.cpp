// What follows from a machine's sizes, on machines that are not here.
#include <gtest/gtest.h>

#include "device/host/shared_memory_arena.h"
#include "kernels/dispatch/available_memory.h"

namespace trellis::device {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20, tib = mib << 20;

TEST(MachineSizes, TheWindowHasRoomForHolesAndLeavesAddressesToOthers) {
  EXPECT_EQ(window_bytes(512 * mib), 2048 * mib);
  EXPECT_EQ(window_bytes(tib), 4 * tib);
  EXPECT_EQ(window_bytes(2 * tib), 4 * tib);
  EXPECT_EQ(window_bytes(4 * tib), 4 * tib);
  EXPECT_EQ(window_bytes(6 * tib), 6 * tib) << "all of it can be had in one piece";
  EXPECT_EQ(window_bytes(kernels::unknown_memory), 4 * tib);
  for (const std::uint64_t memory : {std::uint64_t{0}, std::uint64_t{1}, 3 * mib + 5, 100 * mib + 1, tib + 1, 300 * tib,
                                     kernels::unknown_memory - 1}) {
    const std::uint64_t window = window_bytes(memory);
    EXPECT_EQ(window % 4096, 0U) << memory;
    EXPECT_GE(window, 16 * mib) << memory;
    EXPECT_LE(window, 64 * tib) << memory;
    EXPECT_GE(window + 4096, std::min(memory, 64 * tib)) << memory;
  }
}

}  // namespace
}  // namespace trellis::device
