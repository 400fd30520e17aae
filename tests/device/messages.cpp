// Messages between the cores of a process.
#include <gtest/gtest.h>

#include <thread>

#include "device/messages/tcp_messenger.h"
#include "tests/device/standin.h"
#include "tests/why.h"

namespace trellis::device {
namespace {

using namespace std::chrono_literals;

// A core may be closed as soon as all its requests are done: it must not leave anything under way.
TEST(Messages, NothingIsLeftOnceARequestIsDone) {
  listen_at_free_ports();
  TcpMessenger sender(0, 120s), receiver(1, 120s);
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

TEST(Messages, APeersPortIsNamedWhereItIsTooLarge) {
  listen_at_free_ports();
  TcpMessenger core(0, 120s);
  const std::string why = trellis::why<std::system_error>([&] { core.pair(true, {"127.0.0.1:64999", 2}); });
  EXPECT_NE(why.find("port 64999 + 2"), std::string::npos) << why;
}

// The first channel to a core is paired with its first accept, the second with its second, whichever thread is faster.
TEST(Messages, ChannelsBetweenTwoCoresAreNotCrossed) {
  listen_at_free_ports();
  TcpMessenger sender(0, 120s), receiver(1, 120s);
  constexpr int pairs = 16;
  std::vector<std::shared_ptr<MessageEndpoint>> to, from;
  for (int i = 0; i < pairs; ++i) to.push_back(sender.pair(true, {"127.0.0.1", 1}));
  for (int i = 0; i < pairs; ++i) from.push_back(receiver.pair(false, {"127.0.0.1", 0}));
  std::vector<std::shared_ptr<MessageRequest>> requests;
  std::vector<std::byte> got(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    while (!to[i]->is_connected() || !from[i]->is_connected()) std::this_thread::sleep_for(1ms);
    requests.push_back(to[i]->add({.bytes = 1, .read = [i](std::byte* b) { *b = static_cast<std::byte>(i); }}));
    requests.push_back(
        from[i]->add({.bytes = 1, .write = [&got, i](const std::byte* b, std::size_t) { got[i] = *b; }}));
  }
  for (const auto& request : requests)
    while (!request->done()) std::this_thread::yield();
  for (std::size_t i = 0; i < pairs; ++i) EXPECT_EQ(got[i], static_cast<std::byte>(i)) << "through channel " << i;
}

}  // namespace
}  // namespace trellis::device
