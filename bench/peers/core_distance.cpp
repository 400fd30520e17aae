// Measures the distance of two cores for run.py: `core_distance CORE CORE` prints the one-way time of a cache line in
// nanoseconds (half of the round trip). It is the minimum of many batches, since other load can only add to it.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

constexpr int batches = 200, turns = 500;

alignas(128) std::atomic<int> ball = 0;

void stay_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    std::fprintf(stderr, "core_distance: core %d can't be had\n", core);
    std::exit(1);
  }
}

// A rank that waits this long shares its core, so it yields to the other one.
void wait_for(int value) {
  for (int spins = 1; ball.load(std::memory_order_acquire) != value; ++spins)
    if (spins % 100'000 == 0) sched_yield();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: core_distance CORE CORE\n"), 2;
  const int here = std::atoi(argv[1]), there = std::atoi(argv[2]);
  constexpr int all = 2 * batches * turns;
  std::thread other([&] {
    stay_on(there);
    for (int i = 1; i < all; i += 2) {
      wait_for(i);
      ball.store(i + 1, std::memory_order_release);
    }
  });
  stay_on(here);
  double least = 1e300;
  for (int batch = 0, i = 0; batch < batches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    for (int turn = 0; turn < turns; ++turn, i += 2) {
      wait_for(i);
      ball.store(i + 1, std::memory_order_release);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    if (batch > 0) least = std::min(least, took.count() / (2 * turns));
  }
  other.join();
  std::printf("%.1f\n", least);
}
