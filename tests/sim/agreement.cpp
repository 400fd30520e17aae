// How far packets and flows differ over a family of patterns, and what flows can't show.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "schedule/algorithms/algorithm.h"
#include "sim/cluster/price/simulation_run.h"
#include "tests/sim/packet_network.h"

namespace trellis::sim {
namespace {

using schedule::Collective;
using schedule::Request;

struct Case {
  const char* what;
  const char* machine;
  const char* algorithm;
  Request request;
  double transfers;  // equal ones that the larger buffer is divided into
  double most;       // limit for the relative difference of the two models: higher where transfers share a link
  const char* fault = nullptr;
};

constexpr double alone = 0.01, shared = 0.03;

Request of(std::vector<Rank> dims) { return {.operation = {.in_place = true}, .dims = std::move(dims)}; }
Request of(Collective collective, Rank ranks) { return {.operation = {.collective = collective}, .dims = {ranks}}; }

Request permutation(Rank ranks, std::uint32_t seed) {
  Request request = of(Collective::permute, ranks);
  std::vector<Rank> targets(static_cast<std::size_t>(ranks));
  std::iota(targets.begin(), targets.end(), 0);
  std::shuffle(targets.begin(), targets.end(), std::mt19937(seed));
  for (Rank r = 0; r < ranks; ++r) request.operation.pairs.push_back({r, targets[static_cast<std::size_t>(r)]});
  return request;
}

std::vector<Case> family() {
  return {{"ring", "ring:8", "ring", of({8}), 8, alone},
          {"halving-doubling, full", "full:16", "halving_doubling", of({16}), 16, alone},
          {"torus 8", "torus:8", "torus", of({8}), 16, alone},
          {"torus 4x4", "torus:4x4", "torus", of({4, 4}), 64, alone},
          {"torus 4x4x4", "torus:4x4x4", "torus", of({4, 4, 4}), 384, alone},
          {"halving-doubling, torus", "torus:4x4", "halving_doubling", of({16}), 16, shared},
          {"torus 8x4", "torus:8x4", "torus", of({8, 4}), 128, shared},
          {"torus 2x4x8", "torus:2x4x8", "torus", of({2, 4, 8}), 384, shared},
          {"ring, one link slow", "ring:16", "ring", of({16}), 16, shared, "slow:3-4:0.5"},
          {"torus 8x4, one link slow", "torus:8x4", "torus", of({8, 4}), 128, shared, "slow:0-1:0.5"},
          {"incast", "switch:16", "direct", of(Collective::gather, 16), 16, shared},
          {"all-to-all, switch", "switch:16", "direct", of(Collective::all_to_all, 16), 16, shared},
          {"all-to-all, ring", "ring:8", "direct", of(Collective::all_to_all, 8), 8, shared},
          {"all-to-all, torus", "torus:4x4", "direct", of(Collective::all_to_all, 16), 16, shared},
          {"permutation, torus, 1", "torus:4x4x4", "direct", permutation(64, 1), 1, shared},
          {"permutation, torus, 2", "torus:4x4x4", "direct", permutation(64, 2), 1, shared},
          {"permutation, ring", "ring:16", "direct", permutation(16, 3), 1, shared},
          {"permutation, fat tree", "fattree:4x8", "direct", permutation(32, 4), 1, shared},
          {"rdh, trn2", "trn2.48xlarge", "rdh", of({4, 4, 4}), 64, shared}};
}

struct Ends {
  Time all = 0;
  std::vector<MoveTrace> each;
};

std::unique_ptr<Network> packets_of_4_kib(const std::vector<Rate>& capacities) {
  return std::make_unique<PacketNetwork>(capacities, 4096);
}

Ends ends(const Case& c, double transfer, bool packets) {
  MachineSpec spec = machine_spec(c.machine);
  if (c.fault != nullptr) what_if(spec, c.fault);
  const Machine machine(spec);
  const CompiledSchedule pattern(schedule::algorithm_named(c.algorithm), c.request);
  RunSettings settings{.fold = false, .trace = true};
  if (packets) settings.network = packets_of_4_kib;
  SimulationRun run(machine, {{.pattern = &pattern, .bytes = transfer * c.transfers}}, settings);
  Ends found{run.run(), {}};
  found.each = run.traces();
  return found;
}

double difference(Time a, Time b) { return std::abs(static_cast<double>(a - b)); }

TEST(Agreement, PacketsAndFlowsOverAFamily) {
  for (const Case& c : family())
    for (const double transfer : {65536.0, 1048576.0}) {
      const Ends flows = ends(c, transfer, false), packets = ends(c, transfer, true);
      ASSERT_EQ(flows.each.size(), packets.each.size());
      double each = 0;
      for (std::size_t i = 0; i < flows.each.size(); ++i)
        each = std::max(each, difference(flows.each[i].end, packets.each[i].end));
      const auto all = static_cast<double>(flows.all);
      fmt::print("{:<24} {:>8.0f} bytes: flows {:>9.2f} us, packets {:>9.2f} us, {:5.2f}%; any one transfer {:5.2f}%\n",
                 c.what, transfer, in_us(flows.all), in_us(packets.all), 100 * difference(flows.all, packets.all) / all,
                 100 * each / all);
      EXPECT_LE(difference(flows.all, packets.all), c.most * all) << c.what;
    }
}

// Transfers of one packet each take turns and end one after the other; as flows they all end with the last.
TEST(Agreement, ShortTransfersEndTogetherOnlyAsFlows) {
  const Case c{"incast", "switch:8", "direct", of(Collective::gather, 8), 8, 0};
  const Ends flows = ends(c, 4096, false), packets = ends(c, 4096, true);
  std::vector<Time> sorted;
  for (const MoveTrace& t : packets.each) sorted.push_back(t.end);
  std::ranges::sort(sorted);
  const std::vector<Time> last(3, flows.all);
  EXPECT_LE(difference(flows.all, packets.all), 0.01 * static_cast<double>(flows.all));
  std::size_t together = 0;
  for (const MoveTrace& t : flows.each) together += t.end == flows.each.back().end;
  EXPECT_EQ(together, 7U);
  EXPECT_LT(sorted[sorted.size() - 7], flows.each.back().end / 5);
}

}  // namespace
}  // namespace trellis::sim
