#include "sim/cluster/answer/workload_answer.h"

#include "sim/cluster/workload/compute_rates.h"

namespace trellis::sim {
namespace {

Workload with_algorithms_of(const PlayResult& played, Workload workload) {
  for (std::size_t i = 0; i < workload.parts.size(); ++i)
    if (!workload.parts[i].schedule) workload.parts[i].chosen = played.parts[i].algorithm;
  return workload;
}

}  // namespace

WorkloadAnswer answer(const Workload& workload, const PlayOptions& how, const NoiseOptions& noise, PricingSession& on) {
  ProgressMonitor& watch = on.watch();
  PlayOptions options = how;
  options.stopped = [&](Time reached, double done) { return watch.stopped(reached, done); };
  watch.begin("playing");
  WorkloadAnswer a{.played = play(workload, on.machine(), options)};
  if (a.played.time == forever) {
    a.interrupted = "the end was not reached";
    return a;
  }
  watch.begin("playing again with other figures");
  const Workload same = with_algorithms_of(a.played, workload);
  const auto usual = computations_of(same, on.machine(), options);
  a.interval = interval(
      on.spec(), how.era, a.played.time, [&](const Machine& other) { return play(same, other, options).time; },
      [&](const Machine& other) { return computations_of(same, other, options) == usual; });
  if (!a.interval.all_tried) a.interrupted = "not all figures were tried at the ends of their ranges";
  if (!a.interrupted.empty()) return a;
  watch.begin("playing with noise");
  a.noisy = draw_noise(noise, [&](std::uint64_t seed) {
    PlayOptions noisy = options;
    noisy.noise = seed;
    return play(same, on.machine(), noisy).time;
  });
  a.interrupted = a.noisy.interrupted;
  return a;
}

}  // namespace trellis::sim
