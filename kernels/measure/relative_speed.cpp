#include "kernels/measure/relative_speed.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/dispatch/parallel.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

constexpr std::size_t arena_alignment = 4096;
constexpr double shortest_s = 2e-4;  // of one timing

// One thread is timed by the CPU time that it used, so that other programs on its CPU do not count.
double now(int threads) {
  timespec t;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// A subject laid out in memory, ready to be called.
class Timed {
 public:
  Timed(const TimedKernel& s, Body body, bool streaming, const TimingArena& arena, WorkingSetLevel regime, int threads)
      : subject_(s), body_(body), streaming_(streaming), threads_(threads) {
    const OperandLayout layout = layout_of(s, touched_bytes(regime, arena.cpu()));
    if (layout.end > arena.bytes().size())
      text::refuse("{} touches {} bytes: expected at most the arena's {}", s.kernel->name, layout.end,
                   arena.bytes().size());
    memory_ = arena.bytes().first(layout.end);
    n_ = layout.n;
    for (const std::size_t at : layout.writes) writes_.push_back(&memory_[at]);
    for (const std::size_t at : layout.reads) reads_.push_back(&memory_[at]);
    fill();
    while (timed(calls_) < shortest_s && calls_ < 1'000'000) calls_ *= 2;
  }
  double seconds() const {
    fill();
    return timed(calls_) / static_cast<double>(calls_);
  }
  double bytes() const { return static_cast<double>(n_) * mix_of(subject_).moved(); }
  std::string_view name() const { return subject_.kernel->name; }

 private:
  // Fills the memory with bytes that are finite numbers in every type.
  void fill() const { std::memset(memory_.data(), 0x3C, memory_.size()); }
  double timed(std::size_t calls) const {
    const KernelArguments s{.n = n_,
                            .writes = writes_.data(),
                            .reads = reads_.data(),
                            .sources = subject_.sources,
                            .key = random_key({.seed = 1}),
                            .settings = subject_.kernel->settings,
                            .streaming = streaming_};
    const double begin = now(threads_);
    for (std::size_t i = 0; i < calls; ++i)
      if (threads_ == 1)
        body_(s);
      else
        run_parts(*subject_.kernel, body_, s, threads_);
    return now(threads_) - begin;
  }

  TimedKernel subject_;
  Body body_;
  bool streaming_;
  int threads_;
  std::span<std::byte> memory_;
  std::size_t n_ = 0, calls_ = 1;
  std::vector<void*> writes_;
  std::vector<const void*> reads_;
};

// The fastest of the plain loops with the mix nearest to this one, with stores past the caches or without.
Timed best_loop(const TrafficPerElement& mix, const TimingArena& arena, WorkingSetLevel regime, int threads) {
  const std::vector<TimedKernel> loops = limit_loops();
  double least = 3;
  for (const TimedKernel& s : loops) least = std::min(least, mix_of(s).distance(mix));
  std::unique_ptr<Timed> best;
  double best_speed = 0;
  for (const TimedKernel& s : loops)
    for (const bool streaming : {false, true}) {
      if (mix_of(s).distance(mix) > least + 1e-9 || (streaming && s.kernel->sums)) continue;
      auto loop = std::make_unique<Timed>(s, s.kernel->chosen(), streaming, arena, regime, threads);
      const double speed = loop->bytes() / median({loop->seconds(), loop->seconds(), loop->seconds()});
      if (speed > best_speed) best = std::move(loop), best_speed = speed;
    }
  return *best;
}

std::string in_mib(std::uint64_t bytes) {
  return fmt::format("{:.0f} MiB", std::ceil(static_cast<double>(bytes) / (1 << 20)));
}

}  // namespace

TimingArena::TimingArena(const std::vector<TimedKernel>& subjects, const Cpu& cpu, std::uint64_t available)
    : cpu_(cpu), size_(std::max(arena_bytes(subjects, cpu), arena_bytes(limit_loops(), cpu))) {
  if (size_ > available)
    text::refuse("timings from memory touch several times the last cache of {}: {}, and {} of memory are available",
                 in_mib(cpu.l3_bytes != 0 ? cpu.l3_bytes : cpu.l2_bytes), in_mib(size_), in_mib(available));
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(arena_alignment, size_)));
  if (!memory_) throw std::bad_alloc();
}

std::vector<TimedKernel> limit_loops() {
  std::vector<TimedKernel> all;
  for (const auto& [name, kernel] : kernels())
    if (name.starts_with("limit.")) all.push_back({&kernel, static_cast<int>(kernel.reads.size())});
  return all;
}

std::vector<TimedKernel> speed_subjects() {
  std::vector<TimedKernel> all;
  for (const char* name :
       {"cast.f32.bf16.nearest", "cast.f32.bf16.stochastic", "cast.bf16.f32.nearest", "cast.f32.f16.nearest",
        "cast.f16.f32.nearest", "cast.f32.f8e4m3.nearest", "scale.bf16.nearest", "axpy.f32.nearest"})
    all.push_back({&kernel_named(name), 1});
  for (const char* name : {"adamw.f32.f32.f32", "adamw.f32_copy.bf16.f32", "adamw.bf16_stochastic.bf16.f32",
                           "adamw.bf16_stochastic.bf16.bf16", "adamw.bf16_kahan.bf16.f32", "sgd.f32.f32.f32",
                           "sgd.bf16_stochastic.bf16.f32", "dot.f32", "squares.bf16", "lamb.moments.f32",
                           "lamb.squares.f32", "lamb.apply.f32"}) {
    const Kernel& kernel = kernel_named(name);
    all.push_back({&kernel, static_cast<int>(kernel.reads.size())});
  }
  for (const char* name : {"reduce.sum.f32.nearest", "reduce.sum.bf16.nearest", "reduce.sum.bf16.stochastic",
                           "reduce.sum.f16.nearest", "reduce.sum.i32.nearest"})
    for (int sources : {2, 8}) all.push_back({&kernel_named(name), sources});
  return all;
}

RelativeSpeed speed_of(const TimingArena& arena, const TimedKernel& subject, WorkingSetLevel regime, int threads,
                       int rounds) {
  const Kernel& kernel = *subject.kernel;
  const bool streaming = regime == WorkingSetLevel::memory && !kernel.updates_operand(0);
  const Timed timed(subject, kernel.chosen(), streaming, arena, regime, threads);
  const Timed loop = best_loop(mix_of(subject), arena, regime, threads);
  std::vector<double> fractions, speeds, limits;
  for (int round = 0; round < rounds * (regime == WorkingSetLevel::memory ? 1 : 10); ++round) {
    limits.push_back(loop.bytes() / loop.seconds());
    speeds.push_back(timed.bytes() / timed.seconds());
    fractions.push_back(speeds.back() / limits.back());
  }
  const double speed = median(speeds);
  return {.bytes_per_s = speed,
          .limit_bytes_per_s = median(limits),
          .fraction_of_limit = median(fractions),
          .limit = loop.name()};
}

}  // namespace trellis::kernels
