// Compares an all_reduce in all-to-all rounds with one by messages over lanes. Ranks are threads; their buffers are
// ordinary memory (malloc), or device memory, which peers read in place. To alternate the two, pass
// --benchmark_enable_random_interleaving=true.
#include <benchmark/benchmark.h>
#include <sched.h>

#include <cstring>
#include <thread>

#include "ccl/communicator.h"
#include "ccl/store.h"
#include "device/device.h"
#include "kernels/dispatch/usable_cores.h"

namespace {

using namespace trellis;

// Pins the thread to the core of that number, if this process has that many.
void stay_on(ccl::Rank number) {
  static const std::vector<int> cores = kernels::placement().cores;
  if (static_cast<std::size_t>(number) >= cores.size()) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cores[static_cast<std::size_t>(number)], &one);
  sched_setaffinity(0, sizeof one, &one);
}

enum class Memory { own, devices };

class RankOfBench {
 public:
  RankOfBench(const std::shared_ptr<ccl::Store>& store, ccl::Rank rank, ccl::Rank ranks, bool rounds, Memory memory,
              std::size_t bytes)
      : device_(device::open("host")),
        comm_(ccl::Communicator::create(
            store, rank, ranks, {.algorithm = "all_reduce=direct", .transport = "shared_memory", .rounds = rounds},
            device_)),
        count_(bytes / sizeof(float)),
        own_(memory == Memory::own ? 2 * count_ + 2 : 0),
        in_(memory == Memory::own ? own_.data() : static_cast<float*>(device_->allocate(2 * bytes + 8))),
        out_(in_ + count_) {
    std::memset(in_, 0, bytes);
  }
  // True until a rank wants to stop.
  bool all_reduce(bool more = true) {
    in_[count_ - 1] = more ? 0 : 1;
    comm_->all_reduce(in_, out_, count_, kernels::DType::f32);
    return out_[count_ - 1] == 0;
  }

 private:
  std::shared_ptr<device::Device> device_;
  std::unique_ptr<ccl::Communicator> comm_;
  std::size_t count_;
  std::vector<float> own_;
  float *in_, *out_;
};

void all_reduce(benchmark::State& state, ccl::Rank ranks, bool rounds, Memory memory) {
  const auto store = ccl::memory_store();
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::jthread> others;
  for (ccl::Rank r = 1; r < ranks; ++r)
    others.emplace_back([=] {
      stay_on(r);
      RankOfBench rank(store, r, ranks, rounds, memory, bytes);
      while (rank.all_reduce()) {
      }
    });
  stay_on(0);
  RankOfBench rank(store, 0, ranks, rounds, memory, bytes);
  for (auto _ : state) rank.all_reduce();
  rank.all_reduce(false);
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const int bytes : {8, 64, 112, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10}) b->Arg(bytes);
  b->UseRealTime();
}

BENCHMARK_CAPTURE(all_reduce, four_ranks_malloc_rounds, 4, true, Memory::own)->Apply(sizes);
BENCHMARK_CAPTURE(all_reduce, four_ranks_malloc_lanes, 4, false, Memory::own)->Apply(sizes);
BENCHMARK_CAPTURE(all_reduce, four_ranks_device_rounds, 4, true, Memory::devices)->Apply(sizes);
BENCHMARK_CAPTURE(all_reduce, four_ranks_device_lanes, 4, false, Memory::devices)->Apply(sizes);
BENCHMARK_CAPTURE(all_reduce, eight_ranks_malloc_rounds, 8, true, Memory::own)->Apply(sizes);
BENCHMARK_CAPTURE(all_reduce, eight_ranks_malloc_lanes, 8, false, Memory::own)->Apply(sizes);

}  // namespace
