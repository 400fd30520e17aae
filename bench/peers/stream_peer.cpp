// The memory bound for an all_reduce in run.py: ranks that only read and write what an all_reduce between readable
// buffers must, without waiting for each other. Each rank sums its part of all inputs, then copies the other parts.
// Stores bypass the caches or not, whichever is faster at a size. Prints one line per size: bytes, then the median and
// the 99th percentile in microseconds of the slowest rank per iteration.
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "bench/peers/synchronized_start.h"

namespace {

constexpr std::size_t step = 8;  // floats per vector

struct Buffers {
  float *in = nullptr, *out = nullptr;
};

float* buffer(std::size_t floats) {
  void* at = nullptr;
  if (posix_memalign(&at, 64, floats * sizeof(float)) != 0) std::abort();
  std::memset(at, 0, floats * sizeof(float));
  return static_cast<float*>(at);
}

template <bool past>
void put(float* to, __m256 value) {
  past ? _mm256_stream_ps(to, value) : _mm256_store_ps(to, value);
}

template <bool past>
void move_all(const std::vector<Buffers>& all, std::size_t rank, std::size_t floats) {
  const std::size_t part = floats / all.size();
  for (std::size_t i = rank * part; i < (rank + 1) * part; i += step) {
    __m256 sum = _mm256_load_ps(all[0].in + i);
    for (std::size_t r = 1; r < all.size(); ++r) sum = _mm256_add_ps(sum, _mm256_load_ps(all[r].in + i));
    put<past>(all[rank].out + i, sum);
  }
  for (std::size_t r = 0; r < all.size(); ++r)
    for (std::size_t i = r * part; r != rank && i < (r + 1) * part; i += step)
      put<past>(all[rank].out + i, _mm256_load_ps(all[r].out + i));
  _mm_sfence();
}

class Barrier {
 public:
  explicit Barrier(int ranks) : ranks_(ranks) {}
  void wait() {
    const int round = round_.load();
    if (waiting_.fetch_add(1) + 1 == ranks_) {
      waiting_ = 0;
      ++round_;
    } else {
      while (round_.load() == round) _mm_pause();
    }
  }

 private:
  const int ranks_;
  std::atomic<int> waiting_ = 0, round_ = 0;
};

void pin(std::size_t rank) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&one);
  std::size_t seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && seen++ == rank) CPU_SET(cpu, &one);
  if (CPU_COUNT(&one) == 1) pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

using Times = std::vector<double>;  // per iteration

void run_rank(std::vector<Buffers>& all, std::size_t rank, std::size_t floats, bool past, Barrier& barrier,
              Times& took) {
  pin(rank);
  all[rank] = {buffer(floats), buffer(floats)};
  for (double& one : took) {
    for (std::size_t i = 0; i < floats; i += 16) all[rank].in[i] += 1 + 0 * all[rank].out[i];
    barrier.wait();
    const double begin = now_us();
    past ? move_all<true>(all, rank, floats) : move_all<false>(all, rank, floats);
    one = now_us() - begin;
    barrier.wait();
  }
  std::free(all[rank].in), std::free(all[rank].out);
}

Times slowest(std::size_t ranks, std::size_t floats, bool past, std::size_t times) {
  std::vector<Times> took(ranks, Times(times));
  std::vector<Buffers> all(ranks);
  Barrier barrier(static_cast<int>(ranks));
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { run_rank(all, r, floats, past, barrier, took[r]); });
  for (std::thread& t : threads) t.join();
  for (std::size_t i = 0; i < times; ++i)
    for (const Times& rank : took) took[0][i] = std::max(took[0][i], rank[i]);
  std::ranges::sort(took[0]);
  return took[0];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: stream_peer RANKS BYTES...\n"), 2;
  const std::size_t ranks = std::strtoull(argv[1], nullptr, 10);
  for (int a = 2; a < argc; ++a) {
    const std::size_t bytes = std::strtoull(argv[a], nullptr, 10), times = bytes < (4U << 20) ? 200 : 15;
    const std::size_t floats = bytes / sizeof(float) / (ranks * step) * ranks * step;
    const Times within = slowest(ranks, floats, false, times), past = slowest(ranks, floats, true, times);
    const Times& best = within[times / 2] < past[times / 2] ? within : past;
    std::printf("%zu %.3f %.3f\n", bytes, best[times / 2], best[times * 99 / 100]);
    std::fflush(stdout);
  }
}
