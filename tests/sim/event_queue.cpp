#include "sim/hardware/time/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace trellis::sim {
namespace {

TEST(EventQueue, RunsEventsOfOneInstantAsAskedFor) {
  EventQueue<int> queue;
  for (int i = 0; i < 1'000; ++i) queue.push(i % 3 == 0 ? 7 : 9, i);
  int last = -1;
  while (queue.next() == 7) {
    const int event = queue.pop();
    EXPECT_EQ(event, last < 0 ? 0 : last + 3);
    EXPECT_EQ(queue.now(), 7);
    last = event;
  }
  EXPECT_EQ(last, 999);
  for (int i = 1; i < 1'000; i += i % 3) EXPECT_EQ(queue.pop(), i);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next(), forever);
}

// Pushes and pops are mixed at random, with times near and far, many of them equal.
TEST(EventQueue, AgreesWithASortedList) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    EventQueue<std::uint32_t> queue;
    std::vector<std::pair<Time, std::uint32_t>> list;
    std::uint32_t event = 0;
    const std::uint32_t spread = 1U << (seed % 30), pushes = 1 + seed % 7;
    for (int step = 0; step < 3'000; ++step) {
      if (list.empty() || random() % (pushes + 3) < pushes) {
        const Time time = queue.now() + (random() % 4 == 0 ? 0 : random() % spread);
        queue.push(time, event);
        list.insert(std::ranges::upper_bound(list, time, {}, &std::pair<Time, std::uint32_t>::first), {time, event});
        ++event;
      } else {
        ASSERT_EQ(queue.next(), list.front().first);
        ASSERT_EQ(queue.pop(), list.front().second);
        ASSERT_EQ(queue.now(), list.front().first);
        list.erase(list.begin());
      }
      ASSERT_EQ(queue.size(), list.size());
    }
  }
}

// A whole machine's events come at one instant, then as many at an earlier one, again and again. This keeps the test's
// time limit only if no event is moved once for each of the others.
TEST(EventQueue, CrowdsAtOneInstantStayCheap) {
  constexpr int crowd = 200'000;
  EventQueue<int> queue;
  for (const Time time : {900, 700, 500, 300, 100, 600, 100, 300})
    for (int i = 0; i < crowd; ++i) queue.push(time, i);
  for (int i = 0; i < crowd; ++i) {  // each is earlier than all crowds, and is popped at once
    queue.push(i / 4'000, i);
    ASSERT_EQ(queue.pop(), i);
  }
  int last = crowd - 1;
  Time before = 0;
  for (int i = 0; i < 8 * crowd; ++i) {
    const int event = queue.pop();
    ASSERT_EQ(event, (last + 1) % crowd);
    ASSERT_GE(queue.now(), before);
    last = event;
    before = queue.now();
  }
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, ClearedItBeginsAnew) {
  EventQueue<int> queue;
  queue.push(5, 1);
  queue.push(6, 2);
  queue.pop();
  queue.clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.now(), 0);
  queue.push(3, 4);
  EXPECT_EQ(queue.pop(), 4);
}

}  // namespace
}  // namespace trellis::sim
