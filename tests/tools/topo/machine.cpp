// Synthetic machines for hwloc, so that results do not depend on the host.
#include "launch/host_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/topo/host_views.h"

namespace trellis::tools {

using namespace launch;
namespace {

using Threads = std::vector<std::vector<int>>;

TopoMachine described(const char* synthetic) {
  setenv("HWLOC_SYNTHETIC", synthetic, 1);  // NOLINT(concurrency-mt-unsafe): no other thread here
  TopoMachine machine = host_machine();
  unsetenv("HWLOC_SYNTHETIC");  // NOLINT(concurrency-mt-unsafe)
  return machine;
}

// Two packages, each of two L3s of two cores of two threads. Linux numbers the first thread of every core, then the
// rest.
TopoMachine two_packages() {
  return described(
      "pack:2 numa:1(memory=1073741824) l3:2(size=8388608) l2:2(size=1048576) l1:1(size=49152) core:1 "
      "pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)");
}

TopoObject core(std::vector<int> usable, std::vector<int> others = {}) {
  TopoObject c{.kind = TopoObject::Kind::core};
  for (const int t : usable) c.parts.push_back({.kind = TopoObject::Kind::thread, .number = t});
  for (const int t : others) c.parts.push_back({.kind = TopoObject::Kind::thread, .number = t, .usable = false});
  return c;
}

TopoObject cache(std::vector<TopoObject> parts) {
  return {.kind = TopoObject::Kind::cache, .level = 3, .parts = std::move(parts)};
}

TEST(TopoMachine, RanksOnACoreEachStayOnOneL3WhileItHasRoom) {
  const TopoMachine m = two_packages();
  EXPECT_FALSE(m.here);
  EXPECT_EQ(rank_threads(m, 1, CoreAllocationPolicy::one), (Threads{{0}}));
  EXPECT_EQ(rank_threads(m, 2, CoreAllocationPolicy::one), (Threads{{0}, {1}}));
  EXPECT_EQ(rank_threads(m, 3, CoreAllocationPolicy::one), (Threads{{0}, {1}, {2}}));
  EXPECT_EQ(rank_threads(m, 8, CoreAllocationPolicy::one), (Threads{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}));
  EXPECT_EQ(rank_threads(m, 9, CoreAllocationPolicy::one), Threads{});
}

TEST(TopoMachine, TheSmallestPartWithRoomIsTaken) {
  const TopoMachine m{"test",
                      true,
                      {.parts = {cache({core({0}), core({}, {1})}), cache({core({2}, {3}), core({4})}),
                                 cache({core({5}), core({6}), core({7})})}}};
  EXPECT_EQ(rank_threads(m, 2, CoreAllocationPolicy::one), (Threads{{2}, {4}}));
  EXPECT_EQ(rank_threads(m, 3, CoreAllocationPolicy::one), (Threads{{5}, {6}, {7}}));
  EXPECT_EQ(rank_threads(m, 4, CoreAllocationPolicy::one), (Threads{{0}, {2}, {4}, {5}}));
  EXPECT_EQ(usable_cores(m.whole).size(), 6u);
}

TEST(TopoMachine, EqualSharesAreWholeCores) {
  const TopoMachine m = two_packages();
  EXPECT_EQ(rank_threads(m, 2, CoreAllocationPolicy::equal),
            (Threads{{0, 8, 1, 9, 2, 10, 3, 11}, {4, 12, 5, 13, 6, 14, 7, 15}}));
  EXPECT_EQ(rank_threads(m, 3, CoreAllocationPolicy::equal), (Threads{{0, 8, 1, 9}, {2, 10, 3, 11}, {4, 12, 5, 13}}));
  EXPECT_EQ(rank_threads(m, 9, CoreAllocationPolicy::equal), Threads{});
}

TEST(TopoMachine, ThreadsCountAsCoresWhereNoneAreKnown) {
  const TopoMachine m = described("pu:3");
  EXPECT_EQ(usable_cores(m.whole).size(), 3u);
  EXPECT_EQ(rank_threads(m, 3, CoreAllocationPolicy::one), (Threads{{0}, {1}, {2}}));
}

TEST(TopoMachine, TheHostIsHere) {
  const TopoMachine m = host_machine();
  EXPECT_TRUE(m.here);
  EXPECT_GE(usable_cores(m.whole).size(), 1u);
  EXPECT_GE(usable_threads(m.whole).size(), usable_cores(m.whole).size());
}

TEST(TopoMachine, Ranges) {
  EXPECT_EQ(ranges({}), "");
  EXPECT_EQ(ranges({7}), "7");
  EXPECT_EQ(ranges({8, 0, 2, 1, 9}), "0-2,8-9");
}

TEST(TopoText, CoresThatAreAlikeShareALine) {
  EXPECT_EQ(topo_text(two_packages(), {}),
            "host: 2 packages, 2 NUMA nodes, 4 L3s, 8 cores, 16 threads\n\n"
            "package 0; NUMA node 0, 1 GiB\n"
            "  L3 8 MiB\n"
            "    cores 0-1: threads 0-1,8-9; each L2 1 MiB, L1 48 KiB\n"
            "  L3 8 MiB\n"
            "    cores 2-3: threads 2-3,10-11; each L2 1 MiB, L1 48 KiB\n"
            "package 1; NUMA node 1, 1 GiB\n"
            "  L3 8 MiB\n"
            "    cores 4-5: threads 4-5,12-13; each L2 1 MiB, L1 48 KiB\n"
            "  L3 8 MiB\n"
            "    cores 6-7: threads 6-7,14-15; each L2 1 MiB, L1 48 KiB\n");
}

TEST(TopoText, RanksStandBesideTheirCores) {
  TopoMachine m{"test", true, cache({core({0, 2}), core({1}, {3}), core({}, {4})})};
  for (int i = 0; i < 3; ++i) m.whole.parts[static_cast<std::size_t>(i)].number = i;
  EXPECT_EQ(topo_text(m, {.ranks = 1, .threads = {{0}}}),
            "test: 1 L3, 3 cores, 5 threads; 3 of the threads are for this process\n"
            "1 rank, on a core each\n\n"
            "core 0: threads 0,2  rank 0\n"
            "cores 1-2: thread 1, threads 3-4 not for this process\n");
}

TEST(TopoText, MoreRanksThanCores) {
  const std::string text = topo_text(described("core:2 pu:1"), {.ranks = 3});
  EXPECT_EQ(text.substr(0, text.find("\n\n")),
            "host: 1 NUMA node, 2 cores, 2 threads\n3 ranks: more than there are cores; none is bound to one but by "
            "launch --pin");
}

TEST(TopoJson, SaysWhatIsNearARank) {
  const TopoMachine m = two_packages();
  const auto json = nlohmann::json::parse(topo_json(
      m,
      {.ranks = 2, .share = CoreAllocationPolicy::equal, .threads = rank_threads(m, 2, CoreAllocationPolicy::equal)}));
  EXPECT_EQ(json["machine"], "host");
  EXPECT_EQ(json["whole"]["parts"].size(), 2u);
  EXPECT_EQ(json["whole"]["parts"][0]["parts"][0]["bytes"], 1 << 30);
  ASSERT_EQ(json["ranks"].size(), 2u);
  const auto& last = json["ranks"][1];
  EXPECT_EQ(last["rank"], 1);
  EXPECT_EQ(last["cores"], (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(last["l3"], (std::vector<int>{2, 3}));
  EXPECT_EQ(last["numa"], std::vector<int>{1});
}

TEST(TopoPicture, HasABoxForEachCoreAndALabelForEachRank) {
  const TopoMachine m = two_packages();
  const std::string svg = topo_picture(m, {.ranks = 3, .threads = rank_threads(m, 3, CoreAllocationPolicy::one)});
  const auto times = [&](std::string_view words) {
    std::size_t count = 0;
    for (std::size_t at = svg.find(words); at != std::string::npos; at = svg.find(words, at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(times("class=\"core\""), 8u);
  EXPECT_EQ(times(">rank "), 3u);
  EXPECT_EQ(times("class=\"free\""), 5u);
  EXPECT_EQ(times("NUMA node"), 2u);
  EXPECT_NE(svg.find("<title>host: 3 ranks, on a core each</title>"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace trellis::tools
