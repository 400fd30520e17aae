// The model of a host: against measured times, for machines that were never measured, and on every rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "ccl/plan/host/host_algorithm_chooser.h"
#include "ccl/plan/planner.h"
#include "ccl/transports/segment/cells.h"
#include "schedule/algorithms/algorithm.h"
#include "schedule/collective_traits.h"

namespace trellis::ccl {
namespace {

using schedule::AlgorithmConfig;
using enum Collective;

constexpr int lanes = 8;

RankCores cores(int count, int sockets = 1, Rank ranks = 0) {
  RankCores places{.cores = count, .l2_bytes = 2 << 20, .l3_bytes = std::size_t{300} << 20};
  for (Rank r = 0; r < ranks; ++r) places.sockets.push_back(r * sockets / ranks);
  return places;
}

Call call_of(Collective c, std::size_t bytes, Rank ranks) {
  constexpr std::size_t line = 64 / sizeof(float);  // blocks of whole cache lines, as the contests measure them
  std::size_t count = bytes / sizeof(float);
  if (schedule::by_block(c)) count /= static_cast<std::size_t>(ranks);
  if (schedule::by_block(c) && count > line) count -= count % line;
  return {.operation = {.collective = c}, .count = count};
}

struct Measured {
  double us = 0;
  int samples = 0;
};

// What the model chose among the measured candidates, for one kind of memory.
struct Choice {
  std::string of;  // the collective, ranks, bytes and memory
  std::string chosen, best;
  Measured at_chosen, at_best;
  double model_at_chosen = 0, model_at_best = 0;  // us
  double of_best_for_both = 1;  // measured regret of the one config that is best for both memories together
  std::string unsound = {};     // why the measured time of the choice does not count; empty: it does

  double regret() const { return at_chosen.us / at_best.us; }
};

using Times = std::map<std::string, Measured>;  // by config
using MeasuredCalls = std::map<std::tuple<std::string, Rank, std::size_t>, std::map<std::string, Times>>;

MeasuredCalls measured_calls() {
  std::ifstream file(std::string(TRELLIS_SOURCE_DIR) + "/bench/results/host16.json");
  const auto costs = nlohmann::json::parse(file).at("costs");
  MeasuredCalls calls;
  for (const auto& [key, configs] : costs.items()) {
    std::istringstream words(key);
    std::string collective, memory;
    Rank ranks = 0;
    words >> collective >> ranks >> memory;
    for (const auto& [config, times] : configs.items())
      for (const auto& [bytes, cost] : times.items())
        calls[{collective, ranks, std::stoul(bytes)}][memory][config] = {cost.at(0), cost.at(1)};
  }
  return calls;
}

double best_of(const Times& times) {
  return std::ranges::min_element(times, {}, [](const auto& t) { return t.second.us; })->second.us;
}

// The config with the least product of regrets over both kinds of memory, as one choice serves both.
std::string best_for_all(const std::map<std::string, Times>& memories) {
  std::string best;
  double least = 0;
  for (const auto& entry : memories.begin()->second) {
    double product = 1;
    for (const auto& [memory, times] : memories) {
      const auto found = times.find(entry.first);
      product = found == times.end() ? 0 : product * found->second.us / best_of(times);
      if (product == 0) break;
    }
    if (product != 0 && (best.empty() || product < least)) best = entry.first, least = product;
  }
  return best;
}

// Why a measured time says too little of its algorithm to judge a choice by; "": it counts. The rules do not depend on
// what is chosen.
std::string unsound(const Call& call, std::size_t bytes, const std::string& config, const std::string& memory,
                    const std::map<std::string, Times>& memories) {
  if (schedule::carries_data(call.operation.collective) && call.count == 0) return "nothing is sent";
  // A contest gives a candidate up after one sample if that was several times slower than others. Cold pages may be the
  // cause, so one sample says nothing of the algorithm.
  const Measured& here = memories.at(memory).at(config);
  if (here.samples < 3) return "one sample";
  // Messages that fit into a cell are sent alike from both kinds of memory, so a time twice as long as with the other
  // kind is not that of the algorithm.
  if (bytes <= LaneCell::room)
    for (const auto& [other, times] : memories)
      if (const auto found = times.find(config); found != times.end() && here.us > 2 * found->second.us)
        return "half as long with " + other;
  return "";
}

std::vector<Choice> choices(const std::set<Rank>& left_out) {
  std::vector<Choice> all;
  for (const auto& [of, memories] : measured_calls()) {
    const auto& [collective, ranks, bytes] = of;
    if (left_out.contains(ranks)) continue;
    const Call call = call_of(schedule::collective_named(collective), bytes, ranks);
    HostAlgorithmChooser chooser(ranks, {lanes}, cores(16));
    const auto& ranked = chooser.ranked(call);
    const std::string both = best_for_all(memories);
    for (const auto& [memory, times] : memories) {
      const auto known = [&times = times](const PredictedTime& p) { return times.contains(text_of(p.config)); };
      const auto predicted = [&ranked, &memory = memory](const std::string& config) {
        const auto found = std::ranges::find_if(ranked, [&](const auto& p) { return text_of(p.config) == config; });
        return found == ranked.end() ? 0 : memory == "device" ? found->readable_us : found->hidden_us;
      };
      const auto choice = std::ranges::find_if(ranked, known);
      EXPECT_NE(choice, ranked.end()) << collective << ranks << bytes;
      if (choice == ranked.end()) continue;
      const auto best = std::ranges::min_element(times, {}, [](const auto& t) { return t.second.us; });
      const std::string chosen = text_of(choice->config);
      all.push_back({.of = fmt::format("{:14} {:2} {:8} {}", collective, ranks, bytes, memory),
                     .chosen = chosen,
                     .best = best->first,
                     .at_chosen = times.at(chosen),
                     .at_best = best->second,
                     .model_at_chosen = predicted(chosen),
                     .model_at_best = predicted(best->first),
                     .of_best_for_both = both.empty() ? 1 : times.at(both).us / best->second.us,
                     .unsound = unsound(call, bytes, chosen, memory, memories)});
    }
  }
  return all;
}

struct Spread {
  std::size_t count = 0;
  double median = 1, percentile_90 = 1, worst = 1;
};

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n == 0 ? Spread{} : Spread{n, values[n / 2], values[n * 9 / 10], values.back()};
}

std::string text_of(const Spread& s) {
  return fmt::format("{} choices: median {:.3f}, 90th percentile {:.3f}, worst {:.2f}", s.count, s.median,
                     s.percentile_90, s.worst);
}

// The costs are fitted to the times of 8 ranks; those of 4, 6 and 16 are the check. TRELLIS_REGRETS names a file to
// write every choice to, with those of 8 ranks.
TEST(HostModel, ChoosesWellWhereItWasNotFitted) {
  const auto spread = [](const std::vector<Choice>& all, bool sound_only, auto value) {
    std::vector<double> values;
    for (const Choice& c : all)
      if (c.unsound.empty() || !sound_only) values.push_back(value(c));
    return spread_of(values);
  };
  const auto regret = [](const Choice& c) { return c.regret(); };
  const std::vector<Choice> held_out = choices({8});
  const Spread sound = spread(held_out, true, regret);
  RecordProperty("sound", text_of(sound));
  RecordProperty("all", text_of(spread(held_out, false, regret)));
  if (const char* path = std::getenv("TRELLIS_REGRETS")) {
    std::ofstream out(path);
    out << "call, choice: measured us (samples; model), best: the same, regret, of the best for both memories\n";
    const std::vector<Choice> fitted = choices({4, 6, 16});
    for (const auto& [name, all] : {std::pair("fitted", &fitted), std::pair("held out", &held_out)}) {
      for (const Choice& c : *all)
        out << fmt::format("{:34} {:36} {:9.2f} ({:2}; {:9.2f}) {:36} {:9.2f} ({:2}; {:9.2f}) {:5.2f} {:5.2f}{}\n",
                           c.of, c.chosen, c.at_chosen.us, c.at_chosen.samples, c.model_at_chosen, c.best, c.at_best.us,
                           c.at_best.samples, c.model_at_best, c.regret(), c.of_best_for_both,
                           c.unsound.empty() ? "" : " unsound: " + c.unsound);
      out << name << ", sound: " << text_of(spread(*all, true, regret)) << "\n"
          << name << ", all: " << text_of(spread(*all, false, regret)) << "\n"
          << name << ", best for both memories: "
          << text_of(spread(*all, false, [](const Choice& c) { return c.of_best_for_both; })) << "\n";
    }
  }
  ASSERT_GT(sound.count, 160U);
  EXPECT_LT(sound.median, 1.06);
  EXPECT_LT(sound.percentile_90, 1.5);
  EXPECT_LT(sound.worst, 2.7);
}

double fastest(Collective c, std::size_t bytes, Rank ranks, const RankCores& places) {
  HostAlgorithmChooser chooser(ranks, {lanes}, places);
  const auto& ranked = chooser.ranked(call_of(c, bytes, ranks));
  EXPECT_FALSE(ranked.empty());
  return ranked.empty() ? 0 : ranked.front().readable_us;
}

TEST(HostModel, MoreBytesAndMoreRanksTakeLonger) {
  for (const Collective c : {all_reduce, all_gather, reduce_scatter, all_to_all, broadcast}) {
    for (const Rank ranks : {2, 6, 16, 100}) {
      double before = 0;
      for (std::size_t bytes = std::size_t{1} << 16; bytes <= std::size_t{16} << 20; bytes *= 16) {
        const double now = fastest(c, bytes, ranks, cores(ranks));
        EXPECT_GT(now, before) << schedule::name(c) << " " << ranks << " " << bytes;
        before = now;
      }
    }
    EXPECT_GT(fastest(c, 1 << 20, 64, cores(64)), fastest(c, 1 << 20, 8, cores(8))) << schedule::name(c);
  }
}

TEST(HostModel, SocketsAndSharedCoresCostTime) {
  for (const Collective c : {all_reduce, all_gather, broadcast})
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{1} << 20}) {
      const double own = fastest(c, bytes, 32, cores(32, 1, 32));
      EXPECT_GE(fastest(c, bytes, 32, cores(32, 2, 32)), own) << schedule::name(c) << " " << bytes;
      EXPECT_GT(fastest(c, bytes, 32, cores(8, 1, 32)), own) << schedule::name(c) << " " << bytes;
    }
}

// 32 ranks on 16 cores: with a hardware thread for each, no message waits for the scheduler.
TEST(HostModel, RanksWithAHardwareThreadEachAreNotSwitched) {
  const auto small = [](int threads) {
    RankCores places = cores(16);
    places.threads = threads;
    HostAlgorithmChooser chooser(32, {lanes}, places);
    return chooser.ranked(call_of(all_reduce, 8, 32)).front();
  };
  EXPECT_EQ(text_of(small(32).config), "recursive_doubling");
  EXPECT_LT(small(32).readable_us, 10);
  for (const int threads : {0, 16, 31}) {
    EXPECT_EQ(small(threads).config.algorithm, "hierarchical") << threads;
    EXPECT_GT(small(threads).readable_us, 20) << threads;
  }
}

// Data that fit the L3 caches of all ranks together do not cost what memory does.
TEST(HostModel, RanksOnSeveralL3CachesHaveThemAll) {
  const auto places = [](int caches) {
    RankCores all = cores(128);
    all.l3_bytes = static_cast<std::size_t>(caches) * 32 << 20;
    all.l3_caches = caches;
    return all;
  };
  EXPECT_LT(fastest(all_reduce, 1 << 19, 128, places(16)), 0.6 * fastest(all_reduce, 1 << 19, 128, places(1)));
  EXPECT_EQ(fastest(all_reduce, 1 << 10, 128, places(16)), fastest(all_reduce, 1 << 10, 128, places(1)));
}

// Small messages cost latency, so rounds should be few; large ones cost bandwidth, so bytes should be sent seldom.
TEST(HostModel, SmallCallsTakeFewRoundsAndLargeOnesFewBytes) {
  for (const Rank ranks : {16, 64, 256}) {
    HostAlgorithmChooser chooser(ranks, {lanes}, cores(ranks));
    EXPECT_NE(chooser.ranked(call_of(all_reduce, 64, ranks)).front().config.algorithm, "ring") << ranks;
    const std::string large = chooser.ranked(call_of(all_reduce, 16 << 20, ranks)).front().config.algorithm;
    for (const char* whole : {"direct", "recursive_doubling", "swing_whole", "binomial"}) EXPECT_NE(large, whole);
  }
}

// An algorithm should neither send every byte to every rank nor take a round for each, on one socket or two.
TEST(HostModel, ChoosesNothingAbsurdOnManyRanks) {
  const auto chosen = [](Collective c, std::size_t bytes, Rank ranks, int sockets) {
    HostAlgorithmChooser chooser(ranks, {lanes}, cores(ranks, sockets, ranks));
    return chooser.ranked(call_of(c, bytes, ranks)).front().config.algorithm;
  };
  for (const Rank ranks : {64, 128, 256})
    for (const int sockets : {1, 2}) {
      const std::string of = fmt::format("{} ranks in {} sockets", ranks, sockets);
      for (const std::size_t bytes : {8, 4096}) EXPECT_NE(chosen(all_reduce, bytes, ranks, sockets), "ring") << of;
      for (const std::size_t bytes : {1 << 16, 1 << 20})
        for (const char* whole : {"direct", "recursive_doubling", "swing_whole", "binomial", "binary_tree"})
          EXPECT_NE(chosen(all_reduce, bytes, ranks, sockets), whole) << of << " " << bytes;
      for (const char* chain : {"ring", "direct"}) EXPECT_NE(chosen(broadcast, 8, ranks, sockets), chain) << of;
      EXPECT_NE(chosen(barrier, 0, ranks, sockets), "direct") << of;
    }
}

// All ranks know the same RankCores. The choice must depend on nothing else, such as a rank's number, buffers or
// earlier calls.
TEST(HostModel, EveryRankChoosesAlike) {
  for (const Rank ranks : {3, 8})
    for (const RankCores& places : {cores(16), cores(4), cores(32, 2, ranks)}) {
      std::set<std::string> chosen;
      for (Rank rank = 0; rank < ranks; ++rank) {
        Planner planner(rank, ranks, {lanes}, {}, {}, places);
        float buffer[1];
        std::string text;
        if (rank % 2 == 1) planner.choose({.operation = {.collective = all_reduce}, .count = 77}, false);
        for (const Collective c : {all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, barrier})
          for (const std::size_t count : {1, 1000, 100'000}) {
            Call call{.operation = {.collective = c}, .count = c == barrier ? 0 : count};
            if (rank % 3 == 0) call.input = buffer, call.output = buffer + 1;
            text += text_of(planner.choose(call, false)) + " ";
          }
        chosen.insert(text);
      }
      EXPECT_EQ(chosen.size(), 1U) << ranks << " ranks, " << places.cores << " cores";
    }
}

TEST(HostModel, LeavesMeasuredKindsOfMachinesToTheTable) {
  const Call call{.count = 1 << 14};
  for (const Rank ranks : {2, 4, 8}) {
    const std::string by_table = text_of(Planner(0, ranks, {lanes}, {}).choose(call, false));
    EXPECT_EQ(text_of(Planner(0, ranks, {lanes}, {}, {}, cores(2)).choose(call, false)), by_table);
    EXPECT_TRUE(Planner(0, ranks, {lanes}, {}, {}, cores(2)).predicted(call).empty());
    EXPECT_EQ(Planner(0, ranks, {lanes}, {}, {}, cores(16)).predicted(call).empty(), ranks == 2);
  }
  EXPECT_TRUE(Planner(0, 8, {lanes}, {.machine = "another"}, {}, cores(16)).predicted(call).empty());
}

TEST(HostModel, WhatItChoosesServesTheCall) {
  for (const Rank ranks : {3, 6, 7, 16})
    for (const Collective c : schedule::collectives())
      for (const std::size_t count : {1, 5, 100'003}) {
        if (schedule::uneven(c) || c == permute || c == send_recv) continue;
        const Call call{.operation = {.collective = c, .root = schedule::rooted(c) ? ranks - 1 : 0},
                        .count = c == barrier ? 0 : count};
        EXPECT_NO_THROW(Planner(0, ranks, {lanes}, {}, {}, cores(16)).choose(call, true)) << schedule::name(c);
      }
}

}  // namespace
}  // namespace trellis::ccl
