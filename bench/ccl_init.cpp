// Measures the time to make a communicator in fresh processes, up to creation and up to the first sum. Also reports the
// memory of a communicator before any traffic: resident private and shared memory, with shared pages divided among the
// ranks as the kernel counts them (PSS).
#include <benchmark/benchmark.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/rendezvous/unique_id.h"

namespace {

using namespace trellis::ccl;

constexpr Rank most_ranks = 64;

// Shared by all processes.
struct Shared {
  std::atomic<int> here, named, made, measured;
  UniqueId id;
  std::array<Clock::time_point, most_ranks> begun, ended;
  std::array<double, most_ranks> kib, reported_kib, first_ms;

  double most(const std::array<double, most_ranks>& of, Rank ranks) const {
    return *std::max_element(of.begin(), of.begin() + ranks);
  }
};

double kib_in_use() {
  std::ifstream file("/proc/self/smaps_rollup");
  double sum = 0;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Pss_Anon:") || line.starts_with("Pss_Shmem:"))
      sum += std::stod(line.substr(line.find(':') + 1));
  return sum;
}

// Waiting yields, so that a late process gets a core.
void wait_for(const std::atomic<int>& count, int wanted) {
  while (count < wanted) sched_yield();
}

void be_rank(Shared& all, Rank rank, Rank ranks) {
  const auto me = static_cast<std::size_t>(rank);
  const double before = kib_in_use();
  ++all.here;
  wait_for(all.here, ranks);
  all.begun[me] = Clock::now();
  if (rank == 0) {
    all.id = make_unique_id();
    all.named = 1;
  }
  wait_for(all.named, 1);
  const Config config;
  const auto c = Communicator::create(store_for(all.id, Clock::now() + config.timeout), rank, ranks, config);
  all.ended[me] = Clock::now();
  ++all.made;
  wait_for(all.made, ranks);
  all.kib[me] = kib_in_use() - before;
  all.reported_kib[me] = static_cast<double>(c->memory_bytes()) / 1024;
  ++all.measured;
  wait_for(all.measured, ranks);
  float one = 1;
  const auto began = Clock::now();
  c->all_reduce(&one, &one, 1, trellis::kernels::DType::f32);
  all.first_ms[me] = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

void start(Shared& all, Rank rank, Rank ranks) {
  if (fork() != 0) return;
  alarm(60);  // in case another process has failed
  try {
    be_rank(all, rank, ranks);
    _exit(0);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
    _exit(1);
  }
}

void processes(benchmark::State& state) {
  const auto ranks = static_cast<Rank>(state.range(0));
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  double kib = 0, reported_kib = 0, first_ms = 0;
  for (auto _ : state) {
    Shared& all = *new (memory) Shared();
    for (Rank r = 0; r < ranks; ++r) start(all, r, ranks);
    for (int status = 0; wait(&status) > 0;)
      if (status != 0) state.SkipWithError("a rank failed");
    const auto first = *std::min_element(all.begun.begin(), all.begun.begin() + ranks);
    const auto last = *std::max_element(all.ended.begin(), all.ended.begin() + ranks);
    state.SetIterationTime(std::chrono::duration<double>(last - first).count());
    kib = std::max(kib, all.most(all.kib, ranks));
    reported_kib = std::max(reported_kib, all.most(all.reported_kib, ranks));
    first_ms += all.most(all.first_ms, ranks);
  }
  state.counters["KiB_of_a_rank"] = kib;
  state.counters["KiB_reported"] = reported_kib;
  state.counters["first_sum_ms"] = benchmark::Counter(first_ms, benchmark::Counter::kAvgIterations);
  munmap(memory, sizeof(Shared));
}

// Measures ranks that are threads of this process. Unlike fresh processes, iterations after the first find it prepared.
void threads(benchmark::State& state) {
  const auto ranks = static_cast<Rank>(state.range(0));
  std::size_t bytes = 0;
  for (auto _ : state) {
    const auto store = memory_store();
    std::vector<std::unique_ptr<Communicator>> made(static_cast<std::size_t>(ranks));
    const auto begun = Clock::now();
    {
      std::vector<std::jthread> all;
      for (Rank r = 0; r < ranks; ++r)
        all.emplace_back([&, r] {
          made[static_cast<std::size_t>(r)] = Communicator::create(store, r, ranks, {.transport = "loopback"});
        });
    }
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begun).count());
    bytes = std::max(bytes, made.front()->memory_bytes());
  }
  state.counters["KiB_reported"] = static_cast<double>(bytes) / 1024;
}

BENCHMARK(processes)->Arg(2)->Arg(8)->Arg(64)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(threads)->Arg(2)->Arg(8)->Arg(64)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
