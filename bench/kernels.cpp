// Times each streaming kernel next to the best plain loop with the same mix of reads and writes, alternating in one
// run.
#include <benchmark/benchmark.h>

#include <string>

#include "kernels/measure/speed.h"

namespace {

using namespace trellis::kernels;

constexpr int rounds = 7;

void measure(benchmark::State& state, const Subject& subject, Regime regime, int threads) {
  static const Arena arena;
  Speed speed;
  for (auto _ : state) {
    speed = speed_of(arena, subject, regime, threads, rounds);
    state.SetIterationTime(1 / speed.elements_per_s);
  }
  state.counters["achieved_B_per_s"] = speed.bytes_per_s;
  state.counters["limit_B_per_s"] = speed.limit_bytes_per_s;
  state.counters["fraction"] = speed.fraction_of_limit;
  state.SetLabel(std::string(speed.limit));
}

const bool registered = [] {
  for (const Subject& subject : speed_subjects())
    for (Regime regime : regimes)
      for (int threads = 1; threads <= (regime == Regime::memory ? cpu().cores : 1);
           threads += cpu().cores - 1 + (cpu().cores == 1)) {
        const std::string name = subject.kernel->name + "/" + std::to_string(subject.sources) + "/" +
                                 std::string(trellis::kernels::name(regime)) + "/threads:" + std::to_string(threads);
        benchmark::RegisterBenchmark(name.c_str(), measure, subject, regime, threads)->Iterations(1)->UseManualTime();
      }
  return true;
}();

}  // namespace
