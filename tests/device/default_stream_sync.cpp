// A default stream, and the streams that it is ordered with.
#include "device/streams/default_stream_sync.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/host/host_device.h"

namespace trellis::device {
namespace {

// Work that waits until the gate is opened.
struct Gate {
  std::function<void()> work() {
    return [this] {
      while (!open) std::this_thread::yield();
    };
  }
  std::atomic<bool> open = false;
};

TEST(DefaultStreamSync, TheDefaultStreamWaitsForTheOthersAndTheyForIt) {
  const DefaultStreamSync streams(host_of_process());
  const auto all = streams.default_stream();
  const auto first = streams.stream(), second = streams.stream(), apart = host_of_process()->stream();
  Gate gate;
  std::atomic<int> reached = 0;
  first->submit(gate.work());
  all->submit([&] { ++reached; });
  second->submit([&] { ++reached; });
  apart->submit([] {});
  apart->synchronize();
  EXPECT_FALSE(all->idle() || first->idle() || second->idle());
  EXPECT_EQ(reached, 0);
  gate.open = true;
  second->synchronize();
  EXPECT_EQ(reached, 2);
  EXPECT_TRUE(first->idle());
  all->synchronize();
  EXPECT_TRUE(all->idle());
}

TEST(DefaultStreamSync, TheOthersDoNotWaitForEachOther) {
  const DefaultStreamSync streams(host_of_process());
  const auto first = streams.stream(), second = streams.stream();
  Gate gate;
  first->submit(gate.work());
  second->submit([] {});
  second->synchronize();
  EXPECT_FALSE(first->idle());
  EXPECT_FALSE(streams.default_stream()->idle());  // though it was handed nothing
  gate.open = true;
  first->synchronize();
}

TEST(DefaultStreamSync, AFailureStopsItsStreamAlone) {
  const DefaultStreamSync streams(host_of_process());
  const auto all = streams.default_stream();
  const auto failing = streams.stream(), other = streams.stream();
  Gate gate;
  bool done = false;
  failing->submit([&] {
    gate.work()();
    throw std::runtime_error("it failed");
  });
  all->submit([&] { done = true; });
  other->submit([] {});
  gate.open = true;
  other->synchronize();
  all->synchronize();
  EXPECT_TRUE(done);
  EXPECT_THROW(failing->synchronize(), std::runtime_error);
}

TEST(DefaultStreamSync, AStreamThatGoesIsWaitedForUntilThen) {
  const DefaultStreamSync streams(host_of_process());
  const auto all = streams.default_stream();
  auto going = streams.stream();
  Gate gate;
  going->submit(gate.work());
  std::jthread goes([&] { going.reset(); });
  all->submit([&] { EXPECT_TRUE(gate.open); });
  EXPECT_FALSE(all->idle());
  gate.open = true;
  all->synchronize();
}

// If submit() throws, the caller keeps what the work uses, so the work must not run later.
TEST(DefaultStreamSync, WorkThatIsRefusedIsNotDone) {
  struct OutOfEvents : HostDevice {
    std::unique_ptr<Event> event() override { return out ? throw std::bad_alloc() : HostDevice::event(); }
    bool out = false;
  };
  const auto device = std::make_shared<OutOfEvents>();
  const DefaultStreamSync streams(device);
  const auto all = streams.default_stream();
  const auto other = streams.stream();
  for (const bool default_waits : {false, true}) {
    Stream &first = default_waits ? *other : *all, &second = default_waits ? *all : *other;
    Gate gate;
    std::atomic<int> done = 0;
    int handed = 0;
    const auto hand = [&](Stream& stream) {
      try {
        stream.submit([&] {
          EXPECT_TRUE(gate.open);
          ++done;
        });
        ++handed;
      } catch (const std::bad_alloc&) {
      }
    };
    first.submit(gate.work());
    device->out = true;
    hand(first);
    hand(second);
    device->out = false;
    hand(second);
    gate.open = true;
    first.synchronize();
    second.synchronize();
    EXPECT_EQ(done, handed);
    EXPECT_GE(handed, 1);
  }
}

// One thread queues random work; each piece checks that all work is done which CUDA orders before it.
TEST(DefaultStreamSync, RandomWorkIsInOrder) {
  std::mt19937 random(7);
  const DefaultStreamSync streams(host_of_process());
  std::vector<std::shared_ptr<Stream>> of(4);
  of[0] = streams.default_stream();
  for (std::size_t i = 1; i < of.size(); ++i) of[i] = streams.stream();
  constexpr std::size_t pieces = 2000;
  std::vector<std::atomic<bool>> done(pieces);
  std::atomic<int> wrong = 0;
  std::vector<std::vector<std::size_t>> handed(of.size());
  std::size_t last_of_default = pieces;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const std::size_t on = random() % 6 == 0 ? 0 : 1 + random() % (of.size() - 1);
    std::vector<std::size_t> before;
    for (std::size_t i = 0; i < of.size(); ++i)
      if ((on == 0 || i == on) && !handed[i].empty()) before.push_back(handed[i].back());
    if (last_of_default != pieces) before.push_back(last_of_default);
    of[on]->submit([&, piece, before] {
      for (const std::size_t one : before) wrong += done[one] ? 0 : 1;
      done[piece] = true;
    });
    handed[on].push_back(piece);
    if (on == 0) last_of_default = piece;
  }
  for (const auto& stream : of) stream->synchronize();
  EXPECT_EQ(wrong, 0);
  for (const auto& one : done) EXPECT_TRUE(one);
}

}  // namespace
}  // namespace trellis::device
