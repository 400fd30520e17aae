#include "sim/cluster/workload/loggopsim_goal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "sim/cluster/workload/play.h"
#include "tests/why.h"

namespace trellis::sim {
namespace {

std::vector<double> ends(const std::string& text, const LogGops& p = {}) { return play_goal(read_goal("g", text), p); }

std::string two(const std::string& first, const std::string& second) {
  return fmt::format("num_ranks 2\nrank 0 {{\n{}\n}}\nrank 1 {{\n{}\n}}\n", first, second);
}

// The times are computed by hand from the usual parameters: L 2500, o 1500, g 1000, G 6.
TEST(Goal, IsPlayedByLogGops) {
  EXPECT_EQ(ends(two("l1: send 1b to 1 tag 7", "l1: recv 1b from 0 tag 7")), (std::vector<double>{1500, 5500}));
  EXPECT_EQ(ends(two("send 1001b to 1", "recv 1001b from 0")), (std::vector<double>{1500, 11500}));
  // The interface is busy for 7000, the second message arrives at 11000, and takes the CPU from 11500 on.
  EXPECT_EQ(ends(two("send 1001b to 1\nsend 1b to 1", "recv 1001b from 0\nrecv 1b from 0")),
            (std::vector<double>{8500, 13000}));
  EXPECT_EQ(ends(two("a: calc 100\nb: send 1b to 1\nb requires a", "recv 1b from 0")),
            (std::vector<double>{1600, 5600}));
  EXPECT_EQ(ends(two("send 1b to 1", "c: calc 9000\nr: recv 1b from 0\nr requires c")),
            (std::vector<double>{1500, 10500}));
  // Two CPUs work at the same time.
  EXPECT_EQ(ends("num_ranks 1\nrank 0 { calc 100 cpu 0 calc 70 cpu 1 calc 10 }"), (std::vector<double>{110}));
}

// Beyond S a send ends when its receiver has come: the computation after it waits for that.
TEST(Goal, LargeMessagesWaitForTheirReceiver) {
  const std::string first = "s: send 1000b to 1\nc: calc 1\nc requires s";
  const std::string second = "c: calc 50000\nr: recv 1000b from 0\nr requires c";
  EXPECT_EQ(ends(two(first, second)).front(), 1501);
  EXPECT_GT(ends(two(first, second), {.S = 999}).front(), 50000);
}

// log2(n) rounds of o + L + o: what LogGOPSim's documentation says of 16 ranks.
TEST(Goal, DisseminationTakesAsLongAsLogGopsimSays) {
  std::string text = "// all to the next, then to the one after\nnum_ranks 16\n";
  for (int r = 0; r < 16; ++r) {
    text += fmt::format("rank {} {{\n", r);
    for (int round = 0; round < 4; ++round) {
      text += fmt::format("s{0}: send 1b to {1} tag {0} cpu 0 nic 0\n", round, (r + (1 << round)) % 16);
      text += fmt::format("r{0}: recv 1b from {1} tag {0}\n", round, (r + 16 - (1 << round)) % 16);
      if (round > 0) text += fmt::format("s{0} requires r{1}\nr{0} requires r{1}\n", round, round - 1);
    }
    text += "}\n";
  }
  EXPECT_EQ(ends(text), std::vector<double>(16, 22000));
  const Workload workload = workload_of(goal_graph(read_goal("g", text)));
  EXPECT_EQ(workload.graph->ranks, 16);
  EXPECT_EQ(std::ranges::count(workload.parts, false, &WorkloadTask::computes), 64);
}

// a begins with b, b with c, and c waits for d: a begins at 1,000 us.
TEST(Goal, WhatBeginsWithAnotherWaitsForWhatThatOneWaitsFor) {
  const std::string text =
      two("d: calc 1000000\nc: send 8b to 1 tag 1\nc requires d\nb: calc 5000\nb irequires c\na: calc 7000 cpu 1\n"
          "a irequires b",
          "recv 8b from 0 tag 1");
  EXPECT_EQ(price(goal_graph(read_goal("g", text)), machine_named("ring:2"), {}).time, 1'007 * us);
  EXPECT_EQ(why([] {
              const std::string circle = "a: calc 1\nb: calc 1\na irequires b\nb irequires a";
              goal_graph(read_goal("g", two(circle, "")));
            }),
            "g: line 3: waits for itself, by way of others");
  std::string chain = "l0: calc 1\nl1: calc 1\nl1 requires l0\n";
  for (int i = 2; i < 100'000; ++i)
    chain += fmt::format("l{0}: calc 1 cpu {2}\nl{0} irequires l{1}\n", i, i - 1, i % 9);
  const ExecutionGraph graph = goal_graph(read_goal("g", two(chain, "")));
  EXPECT_EQ(graph.classes.front().tasks.back().after.size(), 1U);
}

TEST(Goal, ParametersByName) {
  EXPECT_FALSE(loggops_named("trn2.48xlarge"));
  EXPECT_EQ(loggops_named("loggp")->L, 2500);
  EXPECT_EQ(loggops_named("loggp:L=100,G=0.04")->G, 0.04);
  EXPECT_EQ(why([] { loggops_named("loggp:X=1"); }),
            "loggp:X=1: 'X=1': expected one of L, o, g, G, O, S and a number of nanoseconds (S: bytes), as in L=2500");
}

TEST(Goal, Faults) {
  const auto fault = [](const std::string& text) { return why([&] { ends(text); }); };
  EXPECT_EQ(fault("ranks 2"), "g: line 1: 'ranks': expected num_ranks");
  EXPECT_EQ(fault("num_ranks 0"), "g: line 1: '0' as num_ranks: expected 1 to 2097152");
  EXPECT_EQ(fault("num_ranks 2\nrank 2 { }"), "g: line 2: '2' as rank: expected 0 to 1");
  EXPECT_EQ(fault(two("send 1b to 2", "")), "g: line 3: '2' as a rank: expected 0 to 1");
  EXPECT_EQ(fault(two("send 1b to 1", "")), "g: line 3: nobody receives it");
  EXPECT_EQ(fault(two("recv 1b from 1", "")), "g: line 3: nobody sends it");
  EXPECT_EQ(fault(two("a requires b", "")), "g: line 3: no operation is labelled 'a'");
  EXPECT_EQ(fault(two("a: calc 1\nb: calc 1\na requires b\nb requires a", "")),
            "g: line 3: waits for itself, by way of others");
  EXPECT_EQ(fault(two("a: calc 1\na: calc 1", "")), "g: line 4: an operation labelled 'a' was there before");
  EXPECT_EQ(fault("num_ranks 1\nrank 0 {"), "g: line 2: the end of the file: expected an operation or }");
  EXPECT_EQ(why([] { goal_graph(read_goal("g", two("recv 1b from -1", "send 1b to 0"))); }),
            "g: line 3: a receive from any rank or of any tag: expected one of each, or -m loggp");
  EXPECT_TRUE(is_goal("/* x */ // y\nnum_ranks 2"));
  EXPECT_FALSE(is_goal("ranks 16"));
}

}  // namespace
}  // namespace trellis::sim
