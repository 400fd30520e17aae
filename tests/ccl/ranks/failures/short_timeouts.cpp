// Timeouts that are shorter than a few of the sleeps of a rank that waits.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "ccl/communicator.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

// Joining may take longer than such a timeout, so it is tried again.
TEST(ShortTimeouts, EndAWaitForARankThatNeverCalls) {
  std::atomic<bool> ended = false;
  for (int tries = 0; !ended && tries < 100; ++tries) {
    const std::shared_ptr<Store> store = memory_store();
    std::atomic<bool> is_over = false;
    const auto join = [&](Rank r) {
      return Communicator::create(store, r, 2, {.timeout = 20ms, .transport = "loopback"});
    };
    std::thread never_calls([&] {
      try {
        const std::unique_ptr<Communicator> c = join(1);
        while (!is_over) std::this_thread::sleep_for(1ms);
      } catch (const PeerLost&) {
      }
    });
    try {
      const std::unique_ptr<Communicator> c = join(0);
      float x = 0;
      EXPECT_THROW(c->all_reduce(&x, &x, 1, kernels::DType::f32), PeerLost);
      ended = true;
    } catch (const PeerLost&) {
    }
    is_over = true;
    never_calls.join();
  }
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace trellis::ccl
