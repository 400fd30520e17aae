// Who is blamed, and who is not, when nothing comes.
#include "ccl/failure/blame.h"

#include <gtest/gtest.h>

#include <thread>

#include "ccl/store.h"
#include "ccl/transports/open.h"
#include "device/device.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Transport> joined(const std::shared_ptr<Store>& store, Rank rank, device::Device& device) {
  return open_transport(store, {.rank = rank,
                                .ranks = 2,
                                .config = {.transport = "loopback"},
                                .device = &device,
                                .deadline = Clock::now() + 20s});
}

TEST(Blame, WhatARankSentBeforeItLeftIsTaken) {
  const auto store = memory_store();
  const auto device = device::open("host");
  std::unique_ptr<Transport> theirs;
  std::thread other([&] { theirs = joined(store, 1, *device); });
  const auto mine = joined(store, 0, *device);
  other.join();

  const Activity waits{.operation = 1, .waits_for = 1, .running = true};
  mine->show(waits);
  theirs->show({.operation = 1});
  Receiver& receiver = mine->receiver(1, 0);
  const auto drop = [](void*, std::uint32_t, std::size_t, const std::byte*, std::size_t) {};
  Receiving first{.consumer = {drop}, .bytes = 4}, second = first;
  EXPECT_FALSE(receiver.advance(first));
  const std::byte data[4] = {};
  Sending message{.data = data, .bytes = sizeof data};
  EXPECT_TRUE(theirs->sender(0, 0).advance(message));
  theirs.reset();

  EXPECT_NO_THROW(check_health(*mine, waits, 10s));
  EXPECT_TRUE(receiver.advance(first));
  EXPECT_FALSE(receiver.advance(second));
  EXPECT_NO_THROW(check_health(*mine, waits, 1ms));  // it may only just have gone
  EXPECT_THROW(check_health(*mine, waits, 10s), PeerLost);
}

// Where other programs keep the cores busy, a turn in which it yields takes long. Deadlines and the others' health are
// looked at only once it sleeps.
TEST(Blame, WhoWaitsLooksAroundHoweverLongEachTurnTakes) {
  const auto store = memory_store();
  const auto device = device::open("host");
  std::unique_ptr<Transport> theirs;
  std::thread other([&] { theirs = joined(store, 1, *device); });
  const auto mine = joined(store, 0, *device);
  other.join();
  mine->receiver(1, 0);
  constexpr std::uint32_t spins = 1000, turns = 50;  // more than it spins, and few of those that it yields
  std::uint32_t turn = 0;
  while (turn < spins && !mine->wait(turn)) ++turn;
  while (turn < spins + turns && !mine->wait(turn++)) std::this_thread::sleep_for(2ms);
  EXPECT_LT(turn, spins + turns);
}

}  // namespace
}  // namespace trellis::ccl
