// Which rank is blamed, and which is not, when no message comes.
#include "ccl/failure/blame.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "ccl/failure/flight_recorder.h"
#include "ccl/failure/mismatch.h"
#include "ccl/plan/message_mark.h"
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

// The transports of two ranks, without communicators that would run operations over them.
struct Joined {
  explicit Joined(device::Device& device) {
    const auto store = memory_store();
    std::thread other([&] { theirs = joined(store, 1, device); });
    mine = joined(store, 0, device);
    other.join();
  }
  void send(const RankActivity& in, std::uint32_t mark) const {
    theirs->show(in);
    const std::byte data[4] = {};
    Sending message{.data = data, .bytes = sizeof data, .mark = mark};
    EXPECT_TRUE(theirs->sender(0, 0).advance(message));
  }
  std::unique_ptr<Transport> mine, theirs;
};

// Whoever looks sees all of what a rank has shown at one time, though it may be writing, or be preempted as it writes.
TEST(Blame, AnActivityIsSeenWhole) {
  const auto device = device::open("host");
  const Joined both(*device);
  std::atomic<bool> over = false;
  std::thread shows([&] {
    for (std::uint64_t n = 1; !over; ++n) {
      both.theirs->show({.operation = n, .count = n, .heartbeat = n, .root = static_cast<Rank>(n & 0xFFFF)});
      both.theirs->rest();
    }
  });
  int changes = 0;
  const Deadline enough = Clock::now() + 60s;
  for (std::uint64_t before = 0; changes < 20'000 && Clock::now() < enough;) {
    const RankActivity a = both.mine->activity(1);
    EXPECT_EQ(a.operation, a.count);
    EXPECT_EQ(a.operation, a.heartbeat);
    EXPECT_EQ(a.operation & 0xFFFF, static_cast<std::uint64_t>(a.root));
    EXPECT_GE(a.operation, before);
    if (HasFailure()) break;
    changes += a.operation != before;
    before = a.operation;
  }
  over = true;
  shows.join();
}

TEST(Blame, WhatARankSentBeforeItLeftIsTaken) {
  const auto device = device::open("host");
  Joined both(*device);
  auto& [mine, theirs] = both;
  const RankActivity waits{.operation = 1, .step = 0, .waits_for = 1, .running = true};
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

  EXPECT_NO_THROW(check_health(*mine, {}, waits, 10s));
  EXPECT_TRUE(receiver.advance(first));
  EXPECT_FALSE(receiver.advance(second));
  EXPECT_NO_THROW(check_health(*mine, {}, waits, 1ms));  // waited for 1 ms: it may only just have left
  EXPECT_THROW(check_health(*mine, {}, waits, 10s), PeerLost);
}

// A message is not taken for one of an earlier operation, however far its sender is ahead, although marks tell only 256
// operations apart.
TEST(Blame, AMessageOfALaterOperationIsNotTakenForOneOfAnEarlierOne) {
  const auto device = device::open("host");
  for (const std::uint64_t ended : {1, 2, 300, 1'000'000}) {
    for (const std::uint64_t ahead : {1, 2, 126, 127, 128, 129, 254, 255, 256, 257, 511, 512, 100'000}) {
      Joined both(*device);
      const RankActivity mine{.operation = ended}, theirs{.operation = ended + ahead};
      both.send(theirs, mark_of(42, theirs.operation, false));
      EXPECT_NO_THROW(check_unread(*both.mine, {}, mine, ended)) << ended << " and " << ahead;
    }
    Joined both(*device);
    const RankActivity mine{.operation = ended}, theirs{.operation = ended + 1};
    both.send(theirs, mark_of(42, ended, false));
    EXPECT_THROW(check_unread(*both.mine, {}, mine, ended), Mismatch) << ended;
  }
}

TEST(Blame, AMarkTellsItsOperation) {
  for (const std::uint64_t operation : {1, 255, 256, 1'000'000})
    for (const std::uint64_t near : {operation, operation + 1, operation + 128, operation - 1, operation - 127})
      EXPECT_EQ(operation_of(mark_of(7, operation, near % 2 == 0), near), operation) << near;
}

// Where other programs keep the cores busy, each turn in which a rank yields takes long. The rank must soon go on to
// sleep, as only then it checks deadlines and the others' health.
TEST(Blame, WhoWaitsLooksAroundHoweverLongEachTurnTakes) {
  const auto device = device::open("host");
  const Joined both(*device);
  const auto& mine = both.mine;
  mine->receiver(1, 0);
  constexpr std::uint32_t spins = 1000, turns = 50;  // more than it spins; far fewer than it may yield
  std::uint32_t turn = 0;
  while (turn < spins && !mine->wait(turn, 10ms)) ++turn;
  while (turn < spins + turns && !mine->wait(turn++, 10ms)) std::this_thread::sleep_for(2ms);
  EXPECT_LT(turn, spins + turns);
}

// Whether rank 0, which has waited for rank 1 for far longer than the timeout, gives it up. `turn` is what rank 1 does
// between two checks.
bool gives_up(const Joined& both, const RankActivity& mine, const std::function<void()>& turn) {
  constexpr std::chrono::milliseconds timeout = 10min;  // so long that the test's own time does not count
  const FamilyMember family(*both.mine, nullptr, {});
  HeartbeatMonitor watch(timeout);
  both.mine->show(mine);
  watch.look_now(*both.mine, Clock::now());
  for (int i = 0; i < 3; ++i) {
    turn();
    watch.look_now(*both.mine, Clock::now());
  }
  try {
    give_up(*both.mine, {}, family, watch, mine, timeout, 10 * timeout);
  } catch (const PeerLost&) {
    return true;
  }
  return false;
}

RankActivity send_recv(Rank for_rank) {
  return {
      .waits_for = for_rank, .collective = static_cast<std::uint8_t>(schedule::Collective::send_recv), .running = true};
}

// Sends and receives have no operation number. A rank that moves data in a few of them, over a slow link, is waited
// for; one that makes ever more of them is not.
TEST(Blame, WhoMovesDataInAFewOtherCallsIsWaitedFor) {
  const auto device = device::open("host");
  for (const bool in_collective : {false, true}) {
    const RankActivity mine =
        in_collective ? RankActivity{.operation = 1, .waits_for = 1, .running = true} : send_recv(1);
    for (const int calls : {0, 1, 100}) {
      Joined both(*device);
      RankActivity theirs = send_recv(-1);
      EXPECT_EQ(gives_up(both, mine,
                         [&] {
                           ++theirs.heartbeat;
                           ++theirs.moves;
                           theirs.waits = static_cast<std::uint16_t>(theirs.waits + calls);
                           both.theirs->show(theirs);
                         }),
                calls == 100)
          << in_collective << calls;
    }
    Joined both(*device);
    RankActivity theirs = send_recv(-1);
    EXPECT_TRUE(gives_up(both, mine, [&] {
      ++theirs.heartbeat;
      both.theirs->show(theirs);
    })) << "nothing moves";
  }
}

TEST(Blame, WhoMovesDataElsewhereInTheFamilyIsWaitedFor) {
  const auto device = device::open("host");
  for (const bool moves : {true, false}) {
    Joined both(*device);
    const RankActivity mine{.operation = 1, .waits_for = 1, .running = true};
    bool begun = true;
    const auto turn = [&] { both.theirs->show_elsewhere(0, {.begun = std::exchange(begun, false), .moved = moves}); };
    EXPECT_NE(gives_up(both, mine, turn), moves);
  }
}

}  // namespace
}  // namespace trellis::ccl
