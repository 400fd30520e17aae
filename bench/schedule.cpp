// Measures how long it takes to build and to prove a schedule, and to build one rank's program of a machine of any
// size.
#include <benchmark/benchmark.h>

#include "schedule/proof/folded.h"

namespace {

using namespace trellis::schedule;

struct Subject {
  const char* algorithm;
  Request request;
};

// The same rank count as a ring, as a hypercube and as a torus.
Subject subject(int which, Rank ranks) {
  switch (which) {
    case 0:
      return {"ring", {.operation = {.in_place = true}, .dims = {ranks}}};
    case 1:
      return {"halving_doubling", {.operation = {.in_place = true}, .dims = {ranks}}};
    default:
      break;
  }
  if (ranks == 64) return {"torus", {.operation = {.in_place = true}, .dims = {4, 4, 4}}};
  if (ranks == 256) return {"torus", {.operation = {.in_place = true}, .dims = {4, 8, 8}}};
  return {"torus", {.operation = {.in_place = true}, .dims = {8, 8, 16}}};
}

void label(benchmark::State& state, const Subject& s, std::int64_t steps) {
  state.SetLabel(s.algorithm);
  state.counters["steps"] = static_cast<double>(steps);
  state.counters["steps_per_s"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsIterationInvariantRate);
}

void build(benchmark::State& state) {
  const Subject s = subject(static_cast<int>(state.range(0)), static_cast<Rank>(state.range(1)));
  std::int64_t steps = 0;
  for (auto _ : state) steps = make(s.algorithm, s.request).steps();
  label(state, s, steps);
}

void prove(benchmark::State& state) {
  const Subject s = subject(static_cast<int>(state.range(0)), static_cast<Rank>(state.range(1)));
  const Schedule schedule = make(s.algorithm, s.request);
  for (auto _ : state)
    if (const Report report = verify(schedule); !report.ok()) state.SkipWithError(report.text().c_str());
  label(state, s, schedule.steps());
}

// An all_reduce on a torus of a million ranks; only this rank's program is built.
void one_rank_of_a_million(benchmark::State& state) {
  const Subject s{"torus", {.operation = {.in_place = true}, .dims = {100, 100, 100}}};
  std::int64_t steps = 0;
  for (auto _ : state)
    steps = static_cast<std::int64_t>(make_program(algorithm_named(s.algorithm), s.request, 543'210).steps.size());
  label(state, s, steps);
  state.counters["ms_per_1000_steps"] = benchmark::Counter(
      static_cast<double>(steps) * 1e-6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void sizes(benchmark::internal::Benchmark* b) {
  for (int which : {0, 1, 2})
    for (int ranks : {64, 256, 1024}) b->Args({which, ranks});
  b->ArgNames({"algorithm", "ranks"})->Unit(benchmark::kMillisecond);
}

BENCHMARK(build)->Apply(sizes);
BENCHMARK(prove)->Apply(sizes);
BENCHMARK(one_rank_of_a_million)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
