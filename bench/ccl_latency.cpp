// Where the time of an all_reduce of 8 bytes between two ranks goes: a cache line's way from core to core, which nobody
// can save; the sum; the call, its checks and records, which a rank alone has too; and the rest, lanes and waiting.
#include <benchmark/benchmark.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "ccl/communicator.h"
#include "ccl/store.h"
#include "kernels/placement.h"
#include "kernels/reduce.h"

namespace {

using namespace trellis;

// On the core of that number, where this process has so many.
void stay_on(std::size_t number) {
  static const std::vector<int> cores = kernels::placement().cores;
  if (number >= cores.size()) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cores[number], &one);
  sched_setaffinity(0, sizeof one, &one);
}

// A second thread on another core, which ends when it is told to.
class Other {
 public:
  template <class Work>
  explicit Other(Work work)
      : thread_([work = std::move(work)] {
          stay_on(1);
          work();
        }) {
    stay_on(0);
  }
  void end() { thread_.join(); }

 private:
  std::thread thread_;
};

void line_one_way(benchmark::State& state) {
  struct alignas(128) Line {
    std::atomic<std::uint64_t> value = 0;
  };
  Line there, back;
  std::atomic<bool> over = false;
  Other other([&] {
    for (std::uint64_t n = 1; !over; ++n) {
      while (there.value.load(std::memory_order_acquire) != n)
        if (over) return;
      back.value.store(n, std::memory_order_release);
    }
  });
  std::uint64_t n = 0;
  for (auto _ : state) {
    there.value.store(++n, std::memory_order_release);
    while (back.value.load(std::memory_order_acquire) != n) {
    }
  }
  over = true;
  other.end();
  state.SetItemsProcessed(2 * state.iterations());  // items_per_second: ways
}

void sum_of_two(benchmark::State& state) {
  float in[2] = {1, 2}, more[2] = {3, 4};
  const void* const sources[] = {in, more};
  for (auto _ : state) {
    kernels::reduce(kernels::Reduction::sum, kernels::DType::f32, sources, in, 2);
    benchmark::DoNotOptimize(in);
  }
}

void call_alone(benchmark::State& state) {
  const auto c = ccl::Communicator::create(ccl::memory_store(), 0, 1, {.transport = "loopback"});
  float in[2] = {1, 2}, out[2];
  for (auto _ : state) c->all_reduce(in, out, 2, kernels::DType::f32);
}

void all_reduce_of_two(benchmark::State& state) {
  const auto store = ccl::memory_store();
  const auto join = [&](ccl::Rank rank) {
    return ccl::Communicator::create(store, rank, 2, {.transport = "loopback"});
  };
  // Goes on until the sum of the second elements says that it is over.
  Other other([&] {
    const auto c = join(1);
    float in[2] = {1, 0}, out[2] = {0, 0};
    while (out[1] == 0) c->all_reduce(in, out, 2, kernels::DType::f32);
  });
  const auto c = join(0);
  float in[2] = {1, 0}, out[2];
  for (auto _ : state) c->all_reduce(in, out, 2, kernels::DType::f32);
  in[1] = 1;
  c->all_reduce(in, out, 2, kernels::DType::f32);
  other.end();
}

BENCHMARK(line_one_way)->UseRealTime();
BENCHMARK(sum_of_two);
BENCHMARK(call_alone);
BENCHMARK(all_reduce_of_two)->UseRealTime();

}  // namespace
