// Messages between the cores of a process.
#include <gtest/gtest.h>

#include <thread>

#include "device/messages/core_messages.h"
#include "tests/device/standin.h"

namespace trellis::device {
namespace {

using namespace std::chrono_literals;

// A core may be closed as soon as all its requests are done: it must not leave anything under way.
TEST(Messages, NothingIsLeftOnceARequestIsDone) {
  listen_at_free_ports();
  CoreMessages sender(0, 10s), receiver(1, 10s);
  const auto to = sender.pair(true, {"127.0.0.1", 1}), from = receiver.pair(false, {"127.0.0.1", 0});
  while (!to->is_connected() || !from->is_connected()) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 5000; ++i) {
    const auto received = from->add({.bytes = 1, .write = [](const std::byte*, std::size_t) {}});
    const auto sent = to->add({.bytes = 1, .read = [](std::byte* b) { *b = {}; }});
    while (!sent->done()) std::this_thread::yield();
    EXPECT_EQ(sender.unfinished(), "") << "after " << i << " messages";
    while (!received->done()) std::this_thread::yield();
    ASSERT_EQ(receiver.unfinished(), "") << "after " << i << " messages";
  }
}

}  // namespace
}  // namespace trellis::device
