#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "schedule/schedule_too_large.h"
#include "sim/cluster/network/approximate_flow_network.h"
#include "sim/cluster/network/flow_network.h"
#include "sim/cluster/network/hybrid_flow_network.h"
#include "tests/sim/packet_network.h"

namespace trellis::sim {
namespace {

constexpr Rate gigabyte = 1'000'000'000'000;  // a second

struct Transfer {
  std::vector<ResourceUse> uses;
  Work work = 0;
  Time start = 0;
};

using Ends = std::map<std::uint64_t, Time>;

// The end of each transfer. `settled` is called at each instant with how many have started, and which have ended.
Ends ends(Network& network, const std::vector<Transfer>& transfers,
          const std::function<void(std::size_t started, const Ends&)>& settled = {}) {
  Ends found;
  std::vector<std::uint64_t> ended;
  std::size_t next = 0;
  Time now = 0;
  for (;;) {
    for (; next < transfers.size() && transfers[next].start == now; ++next)
      network.start(transfers[next].uses, transfers[next].work, next);
    network.settle();
    if (settled) settled(next, found);
    const Time start = next < transfers.size() ? transfers[next].start : forever;
    now = std::min(network.next(), start);
    if (now == forever) return found;
    ended.clear();
    network.advance(now, ended);
    for (std::uint64_t tag : ended) EXPECT_TRUE(found.emplace(tag, now).second) << tag;
  }
}

// The slow reference: water filling over all flows from scratch, in the same whole numbers.
std::vector<Rate> fair_rates(const std::vector<Rate>& capacities, const std::vector<Transfer>& flows) {
  std::vector<Rate> rates(flows.size(), 0), left;
  for (Rate capacity : capacities) left.push_back(capacity * one_use);
  for (;;) {
    Rate least = std::numeric_limits<Rate>::max();
    std::vector<std::uint32_t> tight;
    for (std::uint32_t r = 0; r < capacities.size(); ++r) {
      std::int64_t weight = 0;
      for (std::size_t f = 0; f < flows.size(); ++f)
        for (const ResourceUse& u : flows[f].uses)
          if (rates[f] == 0 && u.resource == r) weight += u.weight;
      if (weight == 0 || left[r] / weight > least) continue;
      if (left[r] / weight < least) tight.clear();
      least = left[r] / weight;
      tight.push_back(r);
    }
    if (tight.empty()) return rates;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const auto here = [&](const ResourceUse& u) { return std::ranges::find(tight, u.resource) != tight.end(); };
      if (rates[f] != 0 || std::ranges::none_of(flows[f].uses, here)) continue;
      rates[f] = least;
      for (const ResourceUse& u : flows[f].uses) left[u.resource] -= least * u.weight;
    }
  }
}

std::uint32_t below(std::mt19937& random, std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); }

// `apart`: nearly every transfer uses only one resource.
std::vector<Transfer> random_transfers(std::mt19937& random, std::uint32_t resources, int count, bool staggered,
                                       bool apart = false) {
  std::vector<Transfer> all;
  for (int i = 0; i < count; ++i) {
    Transfer t{{}, work_of_byte * (1'000'000 + below(random, 3'000'000)), 0};
    const std::uint32_t most_hops = apart && below(random, 100) > 0 ? 1 : 4;
    for (auto hops = 1 + below(random, most_hops); t.uses.size() < hops;) {
      const auto r = static_cast<std::uint32_t>(random() % resources);
      if (std::ranges::none_of(t.uses, [&](const ResourceUse& u) { return u.resource == r; }))
        t.uses.push_back({r, random() % 4 == 0 ? 32U : 16U});
    }
    if (staggered) t.start = static_cast<Time>(below(random, 40)) * us;
    all.push_back(t);
  }
  std::ranges::stable_sort(all, {}, &Transfer::start);
  return all;
}

TEST(FlowNetwork, OneTransferTakesItsBytesTime) {
  FlowNetwork network({50 * gigabyte});
  const auto found = ends(network, {{{{0, 16}}, work_of_byte * 1'000'000, 0}});
  EXPECT_EQ(found.at(0), transfer_time(1e6, 50e9));
}

// A flow takes the time of its slowest resource, however many it uses; a flow with more resources than can be numbered
// is refused.
TEST(FlowNetwork, NoResourceOfALongWayIsLost) {
  constexpr std::uint32_t most = 65'535;
  std::vector<Rate> capacities(most + 2, 50 * gigabyte);
  capacities[most - 1] = gigabyte;
  std::vector<ResourceUse> uses;
  for (std::uint32_t r = 0; r < most; ++r) uses.push_back({r, one_use});
  FlowNetwork network(capacities);
  EXPECT_EQ(ends(network, {{uses, work_of_byte * 1'000'000, 0}}).at(0), transfer_time(1e6, 1e9));
  for (const std::uint32_t more : {most, most + 1}) {
    uses.push_back({more, one_use});
    FlowNetwork other(capacities);
    EXPECT_THROW(ends(other, {{uses, work_of_byte * 1'000'000, 0}}), schedule::ScheduleTooLarge);
  }
}

// Rates are exact at the beginning and after each start or end, when only a part is computed anew. With few flows on a
// resource little is connected, with many most of the network is. With few different capacities, several resources
// offer the same rate, or the same except for rounding.
TEST(FlowNetwork, SharesAsWaterFillingDoes) {
  std::mt19937 random(7);
  for (int round = 0; round < 120; ++round) {
    const auto resources = static_cast<std::uint32_t>(4 + random() % (round % 2 == 0 ? 20 : 100));
    std::vector<Rate> capacities;
    for (std::uint32_t r = 0; r < resources; ++r)
      capacities.push_back(gigabyte * (1 + below(random, round % 3 == 1 ? 3 : 100)));
    const auto flows = random_transfers(random, resources, 2 + static_cast<int>(below(random, 80)), true);
    FlowNetwork network(capacities);
    const auto all = ends(network, flows, [&](std::size_t next, const Ends& ended) {
      std::vector<Transfer> moving;
      std::vector<std::size_t> tags;
      for (std::size_t f = 0; f < next; ++f)
        if (network.rate(f) > 0) moving.push_back(flows[f]), tags.push_back(f);
      const auto rates = fair_rates(capacities, moving);
      for (std::size_t i = 0; i < moving.size(); ++i) ASSERT_EQ(network.rate(tags[i]), rates[i]);
      ASSERT_EQ(moving.size() + ended.size(), next);
    });
    EXPECT_EQ(all.size(), flows.size());
  }
}

// The slow reference: the end of each flow when all rates are computed from scratch after each start or end.
Ends obvious_ends(const std::vector<Rate>& capacities, std::vector<Transfer> flows) {
  Ends found;
  Time now = 0;
  while (found.size() < flows.size()) {
    std::vector<Transfer> moving;
    std::vector<std::size_t> tags;
    Time next = forever;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (found.contains(f)) continue;
      if (flows[f].start <= now)
        moving.push_back(flows[f]), tags.push_back(f);
      else
        next = std::min(next, flows[f].start);
    }
    const auto rates = fair_rates(capacities, moving);
    for (std::size_t i = 0; i < moving.size(); ++i) next = std::min(next, now + time_of(moving[i].work, rates[i]));
    for (std::size_t i = 0; i < moving.size(); ++i) {
      const Work done = static_cast<Work>(rates[i]) * static_cast<Work>(next - now);
      if (done < moving[i].work)
        flows[tags[i]].work -= done;
      else
        found[tags[i]] = next;
    }
    now = next;
  }
  return found;
}

// Flows end at the same picosecond as in the slow reference, also where many flows share a resource and only a few of
// them use a second one.
TEST(FlowNetwork, EndsAsObviously) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const std::uint32_t resources = 4 + below(random, 3);
    std::vector<Rate> capacities;
    for (std::uint32_t r = 0; r < resources; ++r) capacities.push_back(gigabyte * (1 + below(random, 100)));
    auto flows = random_transfers(random, resources, 100, true, round % 4 != 0);
    if (round % 2 == 0)
      for (std::size_t f = 0; f < flows.size(); f += 3) flows[f].work = flows[0].work;
    FlowNetwork network(capacities);
    EXPECT_EQ(ends(network, flows), obvious_ends(capacities, flows)) << round;
  }
}

TEST(FlowNetwork, TheOrderOfStartsDoesNotMatter) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    auto flows = random_transfers(random, 12, 30, false);
    std::vector<Rate> capacities(12, 25 * gigabyte);
    FlowNetwork one(capacities), other(capacities);
    const auto first = ends(one, flows);
    std::vector<Transfer> reversed(flows.rbegin(), flows.rend());
    const auto second = ends(other, reversed);
    for (std::size_t f = 0; f < flows.size(); ++f) EXPECT_EQ(first.at(f), second.at(flows.size() - 1 - f));
  }
}

constexpr double fine = 1.0 / 4096;  // twice the relative error that a level may have

// Flows that each use none, one or several of a few resources; many use each resource.
std::vector<Transfer> crowd(std::mt19937& random, std::uint32_t resources, int count) {
  auto flows = random_transfers(random, resources, count, false);
  for (Transfer& t : flows) t.start = static_cast<Time>(below(random, 1 + below(random, 200))) * us;
  std::ranges::stable_sort(flows, {}, &Transfer::start);
  return flows;
}

// No resource gives more than it has, and each flow uses one that is used up and gives no other flow more.
TEST(ApproximateFlowNetwork, SharesFairlyNearly) {
  std::mt19937 random(13);
  for (int round = 0; round < 40; ++round) {
    const std::uint32_t resources = 4 + below(random, round % 2 == 0 ? 8 : 60);
    std::vector<Rate> capacities;
    for (std::uint32_t r = 0; r < resources; ++r)
      capacities.push_back(gigabyte * (1 + below(random, round % 3 == 1 ? 3 : 100)));
    const auto flows = crowd(random, resources, 50 + static_cast<int>(below(random, 300)));
    ApproximateFlowNetwork network(capacities);
    const auto all = ends(network, flows, [&](std::size_t next, const Ends&) {
      std::vector<double> used(resources, 0), fastest(resources, 0), rates;
      for (std::size_t f = 0; f < next; ++f) {
        rates.push_back(static_cast<double>(network.rate(f)));
        for (const ResourceUse& u : flows[f].uses) {
          used[u.resource] += rates[f] * u.weight / one_use;
          fastest[u.resource] = std::max(fastest[u.resource], rates[f]);
        }
      }
      std::vector<bool> full;
      for (std::uint32_t r = 0; r < resources; ++r) {
        ASSERT_LE(used[r], static_cast<double>(capacities[r]) * (1 + fine)) << round;
        full.push_back(used[r] >= static_cast<double>(capacities[r]) * (1 - fine));
      }
      for (std::size_t f = 0; f < next; ++f) {
        if (rates[f] == 0) continue;
        ASSERT_TRUE(std::ranges::any_of(
            flows[f].uses,
            [&](const ResourceUse& u) { return full[u.resource] && fastest[u.resource] <= rates[f] * (1 + fine); }))
            << round << ' ' << f;
      }
    });
    ASSERT_EQ(all.size(), flows.size());
  }
}

void expect_near(const Ends& found, const Ends& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [tag, end] : wanted)
    EXPECT_NEAR(static_cast<double>(found.at(tag)), static_cast<double>(end), 1e-3 * static_cast<double>(end)) << tag;
}

TEST(ApproximateFlowNetwork, EndsAsFlowsDo) {
  std::mt19937 random(17);
  for (int round = 0; round < 20; ++round) {
    const std::uint32_t resources = 4 + below(random, 30);
    const auto flows = crowd(random, resources, 400);
    std::vector<Rate> capacities;
    for (std::uint32_t r = 0; r < resources; ++r) capacities.push_back(gigabyte * (1 + below(random, 100)));
    FlowNetwork exact(capacities);
    ApproximateFlowNetwork network(capacities);
    expect_near(ends(network, flows), ends(exact, flows));
  }
}

TEST(HybridFlowNetwork, TurnsToACrowdOnTheWay) {
  std::mt19937 random(19);
  for (const int count : {100, 3000}) {
    const std::vector<Rate> capacities(40, 25 * gigabyte);
    const auto flows = crowd(random, 40, count);
    FlowNetwork exact(capacities);
    HybridFlowNetwork network(capacities, 500'000);
    expect_near(ends(network, flows), ends(exact, flows));
    EXPECT_EQ(network.exact(), count == 100);
    for (std::uint32_t r = 0; r < 40; ++r) EXPECT_DOUBLE_EQ(network.carried(r), exact.carried(r));
  }
}

// With small packets, the last end and all others are near those of flows, for transfers that start at odd moments.
TEST(PacketNetwork, AgreesWithFlows) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    const auto flows = random_transfers(random, 10, 15, true);
    std::vector<Rate> capacities(10, 25 * gigabyte);
    FlowNetwork fluid(capacities);
    PacketNetwork packets(capacities, 1024);
    const auto a = ends(fluid, flows), b = ends(packets, flows);
    ASSERT_EQ(a.size(), b.size());
    const auto last = [](const auto& m) {
      return static_cast<double>(std::ranges::max_element(m, {}, [](const auto& e) { return e.second; })->second);
    };
    EXPECT_NEAR(last(b), last(a), 0.01 * last(a)) << round;
    for (const auto& [tag, end] : a)
      EXPECT_NEAR(static_cast<double>(b.at(tag)), static_cast<double>(end), 0.03 * last(a)) << round << ' ' << tag;
  }
}

}  // namespace
}  // namespace trellis::sim
