#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sim/flow_network.h"
#include "sim/packet_network.h"

namespace trellis::sim {
namespace {

constexpr Rate gigabyte = 1'000'000'000'000;  // a second

struct Transfer {
  std::vector<Use> uses;
  Work work = 0;
  Time start = 0;
};

std::map<std::uint64_t, Time> ends(Network& network, const std::vector<Transfer>& transfers) {
  std::map<std::uint64_t, Time> found;
  std::vector<std::uint64_t> ended;
  std::size_t next = 0;
  Time now = 0;
  for (;;) {
    for (; next < transfers.size() && transfers[next].start == now; ++next)
      network.start(transfers[next].uses, transfers[next].work, next);
    network.settle();
    const Time start = next < transfers.size() ? transfers[next].start : forever;
    now = std::min(network.next(), start);
    if (now == forever) return found;
    ended.clear();
    network.advance(now, ended);
    for (std::uint64_t tag : ended) found[tag] = now;
  }
}

// Water filling from scratch over all flows, the slow obvious way.
std::vector<double> fair_rates(const std::vector<double>& capacities, const std::vector<Transfer>& flows) {
  std::vector<double> rates(flows.size(), -1), left = capacities;
  for (;;) {
    double least = 1e300;
    std::size_t tight = 0;
    for (std::size_t r = 0; r < capacities.size(); ++r) {
      double weight = 0;
      for (std::size_t f = 0; f < flows.size(); ++f)
        for (const Use& u : flows[f].uses)
          if (rates[f] < 0 && u.resource == r) weight += u.weight / 16.0;
      if (weight > 0 && left[r] / weight < least) least = left[r] / weight, tight = r;
    }
    if (least > 1e299) return rates;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const bool here = std::ranges::any_of(flows[f].uses, [&](const Use& u) { return u.resource == tight; });
      if (rates[f] >= 0 || !here) continue;
      rates[f] = least;
      for (const Use& u : flows[f].uses) left[u.resource] -= least * u.weight / 16.0;
    }
  }
}

std::uint32_t below(std::mt19937& random, std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); }

std::vector<Transfer> random_transfers(std::mt19937& random, std::uint32_t resources, int count, bool staggered) {
  std::vector<Transfer> all;
  for (int i = 0; i < count; ++i) {
    Transfer t{{}, work_of_byte * (1'000'000 + below(random, 3'000'000)), 0};
    for (auto hops = static_cast<std::uint32_t>(1 + random() % 4); t.uses.size() < hops;) {
      const auto r = static_cast<std::uint32_t>(random() % resources);
      if (std::ranges::none_of(t.uses, [&](const Use& u) { return u.resource == r; }))
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

TEST(FlowNetwork, SharesAsWaterFillingDoes) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const auto resources = static_cast<std::uint32_t>(4 + random() % 20);
    std::vector<Rate> capacities;
    std::vector<double> plain;
    for (std::uint32_t r = 0; r < resources; ++r) {
      capacities.push_back(gigabyte * (1 + below(random, 100)));
      plain.push_back(static_cast<double>(capacities.back()));
    }
    auto flows = random_transfers(random, resources, 2 + static_cast<int>(below(random, 40)), false);
    FlowNetwork network(capacities);
    for (std::size_t f = 0; f < flows.size(); ++f) network.start(flows[f].uses, flows[f].work, f);
    network.settle();
    std::vector<std::uint64_t> ended;
    // And again after each that ends: only a part is worked out anew then.
    while (network.next() != forever) {
      std::vector<Transfer> left;
      std::vector<std::size_t> tags;
      for (std::size_t f = 0; f < flows.size(); ++f)
        if (network.rate(f) > 0) left.push_back(flows[f]), tags.push_back(f);
      const auto rates = fair_rates(plain, left);
      for (std::size_t i = 0; i < left.size(); ++i)
        ASSERT_NEAR(static_cast<double>(network.rate(tags[i])), rates[i], rates[i] * 1e-9 + 100);
      network.advance(network.next(), ended);
      network.settle();
    }
    EXPECT_EQ(ended.size(), flows.size());
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

// Small packets come near flows: within a tenth where transfers start and end at odd moments.
TEST(PacketNetwork, AgreesWithFlows) {
  std::mt19937 random(11);
  double worst = 0;
  for (int round = 0; round < 10; ++round) {
    const auto flows = random_transfers(random, 10, 15, true);
    std::vector<Rate> capacities(10, 25 * gigabyte);
    FlowNetwork fluid(capacities);
    PacketNetwork packets(capacities, 1024);
    const auto a = ends(fluid, flows), b = ends(packets, flows);
    ASSERT_EQ(a.size(), b.size());
    const auto last = [](const auto& m) {
      return std::ranges::max_element(m, {}, [](const auto& e) { return e.second; })->second;
    };
    worst = std::max(worst, std::abs(static_cast<double>(last(b)) / static_cast<double>(last(a)) - 1));
  }
  EXPECT_LT(worst, 0.1);
}

}  // namespace
}  // namespace trellis::sim
