#include "kernels/measure/speed.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/dispatch/parallel.h"

namespace trellis::kernels {
namespace {

constexpr std::size_t line = 64, page = 4096;
constexpr std::size_t most_arrays = 16;
constexpr double shortest_s = 2e-4;  // of one timing

// Bytes an element, of what is only read, of what is only written, and of what is read and written in place.
struct Mix {
  double read = 0, written = 0, updated = 0;
  double moved() const { return read + written + 2 * updated; }
  double distance(const Mix& other) const {
    const auto part = [](const Mix& m, double v) { return v / (m.read + m.written + m.updated); };
    return std::fabs(part(*this, read) - part(other, other.read)) +
           std::fabs(part(*this, written) - part(other, other.written)) +
           std::fabs(part(*this, updated) - part(other, other.updated));
  }
};

DType read_type(const Subject& s, int i) {
  return s.kernel->reads[std::min<std::size_t>(static_cast<std::size_t>(i), s.kernel->reads.size() - 1)];
}

Mix mix_of(const Subject& s) {
  Mix mix;
  for (int i = 0; i < s.sources; ++i) mix.read += static_cast<double>(size_of(read_type(s, i)));
  for (std::size_t w = 0; w < s.kernel->writes.size() && !s.kernel->sums; ++w)
    (s.kernel->updates_operand(w) ? mix.updated : mix.written) += static_cast<double>(size_of(s.kernel->writes[w]));
  return mix;
}

std::size_t bytes_for(Regime r) {
  if (r == Regime::l1) return cpu().l1_bytes / 2;
  if (r == Regime::l2) return cpu().l2_bytes / 2;
  return cpu().out_of_cache() * 3;
}

// Of one thread the time that it ran: what others take of its CPU does not count.
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
  Timed(const Subject& s, Body body, bool streaming, std::byte* memory, std::size_t bytes, int threads)
      : subject_(s), body_(body), streaming_(streaming), threads_(threads), memory_(memory), free_(memory) {
    n_ = static_cast<std::size_t>(static_cast<double>(bytes) / mix_of(s).moved()) / line * line;
    const std::size_t written = s.kernel->sums ? parts_of(n_) : n_;
    for (DType d : s.kernel->writes) writes_.push_back(place(written * size_of(d)));
    for (int i = 0; i < s.sources; ++i) reads_.push_back(place(n_ * size_of(read_type(s, i))));
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
  // Each array begins at another line of a page, so that no two of them fall on the same sets of a cache.
  void* place(std::size_t bytes) {
    std::byte* const at = free_ + 9 * line * arrays_++;
    free_ += (bytes + page - 1) / page * page + page;
    return at;
  }
  // Numbers, whatever the type.
  void fill() const { std::memset(memory_, 0x3C, static_cast<std::size_t>(free_ - memory_)); }
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

  Subject subject_;
  Body body_;
  bool streaming_;
  int threads_;
  std::byte *memory_, *free_;
  std::size_t arrays_ = 0;
  std::size_t n_ = 0, calls_ = 1;
  std::vector<void*> writes_;
  std::vector<const void*> reads_;
};

// The fastest of the plain loops with the mix nearest to this one, with stores past the caches or without.
Timed best_loop(const Mix& mix, std::byte* memory, std::size_t bytes, int threads) {
  constexpr const char* names[] = {"limit.copy",   "limit.add",    "limit.sum4",    "limit.sum8",
                                   "limit.expand", "limit.update", "limit.update2", "limit.update3",
                                   "limit.triad",  "limit.read",   "limit.read2",   "limit.read3"};
  const auto subject = [](const char* name) {
    const Kernel& kernel = kernel_named(name);
    return Subject{&kernel, static_cast<int>(kernel.reads.size())};
  };
  double least = 3;
  for (const char* name : names) least = std::min(least, mix_of(subject(name)).distance(mix));
  std::unique_ptr<Timed> best;
  double best_speed = 0;
  for (const char* name : names)
    for (const bool streaming : {false, true}) {
      const Subject s = subject(name);
      if (mix_of(s).distance(mix) > least + 1e-9 || (streaming && s.kernel->sums)) continue;
      auto loop = std::make_unique<Timed>(s, s.kernel->chosen(), streaming, memory, bytes, threads);
      const double speed = loop->bytes() / median({loop->seconds(), loop->seconds(), loop->seconds()});
      if (speed > best_speed) best = std::move(loop), best_speed = speed;
    }
  return *best;
}

}  // namespace

Arena::Arena() {
  const std::size_t bytes = (bytes_for(Regime::memory) / page + most_arrays * 2) * page;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, bytes)));
  if (!memory_) throw std::bad_alloc();
}

std::vector<Subject> speed_subjects() {
  std::vector<Subject> all;
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

Speed speed_of(const Arena& arena, const Subject& subject, Regime regime, int threads, int rounds) {
  const std::size_t bytes = bytes_for(regime);
  const Kernel& kernel = *subject.kernel;
  const bool streaming = regime == Regime::memory && !kernel.updates_operand(0);
  const Timed timed(subject, kernel.chosen(), streaming, arena.begin(), bytes, threads);
  const Timed loop = best_loop(mix_of(subject), arena.begin(), bytes, threads);
  std::vector<double> fractions, speeds, limits;
  for (int round = 0; round < rounds * (regime == Regime::memory ? 1 : 10); ++round) {
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
