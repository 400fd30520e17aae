// Measures how fast collectives are priced, next to MU: the time of a million events in a radix-heap hold model with
// 100,000 pending. Ratios to MU are comparable between machines.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sim/cluster/price/price.h"

namespace {

using namespace trellis::sim;
using trellis::schedule::Collective;
using trellis::schedule::Request;

// A monotone priority queue of times: bucket i holds times whose highest bit different from the last popped is i - 1.
class RadixHeap {
 public:
  void push(std::uint64_t t) { buckets_[bucket(t)].push_back(t); }
  std::uint64_t pop() {
    if (buckets_[0].empty()) {
      std::size_t i = 1;
      while (buckets_[i].empty()) ++i;
      last_ = *std::min_element(buckets_[i].begin(), buckets_[i].end());
      for (std::uint64_t t : buckets_[i]) buckets_[bucket(t)].push_back(t);
      buckets_[i].clear();
    }
    buckets_[0].pop_back();
    return last_;
  }

 private:
  std::size_t bucket(std::uint64_t t) const { return static_cast<std::size_t>(std::bit_width(t ^ last_)); }
  std::array<std::vector<std::uint64_t>, 65> buckets_;
  std::uint64_t last_ = 0;
};

void mu(benchmark::State& state) {
  RadixHeap heap;
  std::uint64_t random = 1;
  const auto later = [&] {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return 1 + random % 1'000'000;
  };
  for (int i = 0; i < 100'000; ++i) heap.push(later());
  for (auto _ : state)
    for (int i = 0; i < 1'000'000; ++i) heap.push(heap.pop() + later());
}

void price_one(benchmark::State& state, const char* machine, const char* algorithm, const Request& request,
               const PriceOptions& options, const char* fault = nullptr) {
  MachineSpec spec = machine_spec(machine);
  if (fault != nullptr) what_if(spec, fault);
  Price p;
  for (auto _ : state) p = price(trellis::schedule::algorithm_named(algorithm), request, Machine(spec), options);
  state.counters["us_simulated"] = static_cast<double>(p.time) * 1e-6;
  state.counters["ranks"] = p.simulated;
  state.counters["transfers"] = static_cast<double>(p.transfers);
}

constexpr double gib = 1024.0 * 1024 * 1024;

void torus_folded(benchmark::State& state) {
  const auto side = static_cast<std::int32_t>(state.range(0));
  const std::string name = "torus:" + std::to_string(side) + "x" + std::to_string(side) + "x" + std::to_string(side);
  price_one(state, name.c_str(), "torus", {.operation = {.in_place = true}, .dims = {side, side, side}},
            {.bytes = gib});
}

void torus_8x16x16_one_slow_link(benchmark::State& state) {
  price_one(state, "torus:8x16x16", "torus", {.operation = {.in_place = true}, .dims = {8, 16, 16}}, {.bytes = gib},
            "slow:0-1:0.5");
}

void torus_16x32x32_one_slow_link_memory(benchmark::State& state) {
  price_one(state, "torus:16x32x32", "torus", {.operation = {.in_place = true}, .dims = {16, 32, 32}}, {.bytes = gib},
            "slow:0-1:0.5");
}

void ring_unfolded(benchmark::State& state) {
  const auto n = static_cast<std::int32_t>(state.range(0));
  const std::string name = "ring:" + std::to_string(n);
  price_one(state, name.c_str(), "ring", {.operation = {.in_place = true}, .dims = {n}}, {.bytes = gib, .fold = false});
}

void ring_one_slow_link_memory(benchmark::State& state) {
  const auto n = static_cast<std::int32_t>(state.range(0));
  const std::string name = "ring:" + std::to_string(n);
  price_one(state, name.c_str(), "ring", {.operation = {.in_place = true}, .dims = {n}}, {.bytes = gib},
            "slow:0-1:0.5");
}

void all_to_all(benchmark::State& state) {
  const auto n = static_cast<std::int32_t>(state.range(0));
  const std::string name = "switch:" + std::to_string(n);
  price_one(state, name.c_str(), "direct", {.operation = {.collective = Collective::all_to_all}, .dims = {n}},
            {.bytes = 65536.0 * n, .fold = false});
}

void random_permutation_16384(benchmark::State& state) {
  Request request{.operation = {.collective = Collective::permute}, .dims = {16384}};
  std::vector<trellis::schedule::Rank> targets(16384);
  std::iota(targets.begin(), targets.end(), 0);
  std::shuffle(targets.begin(), targets.end(), std::mt19937(1));
  for (std::int32_t r = 0; r < 16384; ++r) request.operation.pairs.push_back({r, targets[r]});
  price_one(state, "torus:16x32x32", "direct", request, {.bytes = 1 << 20});
}

BENCHMARK(mu)->Unit(benchmark::kMillisecond);
BENCHMARK(torus_folded)->Arg(16)->Arg(48)->Arg(100)->Unit(benchmark::kMillisecond);
BENCHMARK(torus_8x16x16_one_slow_link)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_unfolded)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_unfolded)->Name("ring_unfolded-memory")->Arg(4096)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_one_slow_link_memory)
    ->Name("ring_one_slow_link-memory")
    ->Arg(1024)
    ->Arg(4096)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(all_to_all)->Arg(512)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(random_permutation_16384)->Unit(benchmark::kMillisecond);
BENCHMARK(torus_16x32x32_one_slow_link_memory)
    ->Name("torus_16x32x32_one_slow_link-memory")
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
