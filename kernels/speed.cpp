#include "kernels/speed.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

#include "kernels/parallel.h"

namespace trellis::kernels {
namespace {

constexpr std::size_t line = 64;
constexpr double shortest_s = 2e-4;  // of one timing

struct Traffic {
  std::size_t read = 0, written = 0;  // bytes an element
  std::size_t all() const { return read + written; }
  double share() const { return static_cast<double>(read) / static_cast<double>(all()); }
};

DType read_type(const Subject& s, int i) {
  return s.kernel->reads[std::min<std::size_t>(static_cast<std::size_t>(i), s.kernel->reads.size() - 1)];
}

Traffic traffic_of(const Subject& s) {
  Traffic t;
  for (int i = 0; i < s.sources; ++i) t.read += size_of(read_type(s, i));
  for (std::size_t w = 0; w < s.kernel->writes.size() && !s.kernel->sums; ++w) {
    t.written += size_of(s.kernel->writes[w]);
    if (s.kernel->updates_operand(w)) t.read += size_of(s.kernel->writes[w]);
  }
  return t;
}

std::size_t bytes_for(Regime r) {
  if (r == Regime::l1) return cpu().l1_bytes / 2;
  if (r == Regime::l2) return cpu().l2_bytes / 2;
  return cpu().out_of_cache() * 3;
}

// A subject with memory of its own, ready to be called.
class Timed {
 public:
  Timed(const Subject& s, std::size_t bytes, int threads) : subject_(s), threads_(threads) {
    n_ = bytes / traffic_of(s).all() / line * line;
    for (DType d : s.kernel->writes) writes_.push_back(make(size_of(d)));
    for (int i = 0; i < s.sources; ++i) reads_.push_back(make(size_of(read_type(s, i))));
  }
  double seconds(Body body) {
    std::size_t calls = 1;
    for (;; calls *= 4) {
      const auto begin = std::chrono::steady_clock::now();
      for (std::size_t i = 0; i < calls; ++i) call(body);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (took.count() > shortest_s || calls > 1'000'000) return took.count() / static_cast<double>(calls);
    }
  }
  double bytes() const { return static_cast<double>(n_ * traffic_of(subject_).all()); }
  double elements() const { return static_cast<double>(n_); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  // Each array begins at another line of a page, so that no two of them fall on the same sets of a cache.
  void* make(std::size_t size) {
    const std::size_t skip = 9 * line * memory_.size();
    const std::size_t bytes = (n_ * size + skip + 4095) / 4096 * 4096 + 4096;
    memory_.emplace_back(std::aligned_alloc(4096, bytes));
    if (!memory_.back()) throw std::bad_alloc();
    std::memset(memory_.back().get(), 0x3C, bytes);
    return static_cast<std::byte*>(memory_.back().get()) + skip;
  }
  void call(Body body) {
    const Stretch s{.n = n_,
                    .writes = writes_.data(),
                    .reads = reads_.data(),
                    .sources = subject_.sources,
                    .key = random_key({.seed = 1}),
                    .settings = subject_.kernel->settings};
    run(*subject_.kernel, body, s, threads_);
  }

  Subject subject_;
  int threads_;
  std::size_t n_ = 0;
  std::vector<std::unique_ptr<void, Free>> memory_;
  std::vector<void*> writes_;
  std::vector<const void*> reads_;
};

// Never streams, whatever the caller decided.
template <int which>
void cached(const Stretch& s) {
  static const Body body = kernel_named(which == 0   ? "limit.copy"
                                        : which == 1 ? "limit.add"
                                        : which == 2 ? "limit.sum4"
                                        : which == 3 ? "limit.sum8"
                                                     : "limit.expand")
                               .chosen();
  Stretch plain = s;
  plain.streaming = false;
  body(plain);
}

struct Limit {
  const Kernel* kernel;
  Body cached_body;
};

Limit limit_for(double share) {
  static const Limit all[] = {{&kernel_named("limit.copy"), cached<0>},
                              {&kernel_named("limit.add"), cached<1>},
                              {&kernel_named("limit.sum4"), cached<2>},
                              {&kernel_named("limit.sum8"), cached<3>},
                              {&kernel_named("limit.expand"), cached<4>}};
  const auto distance = [&](const Limit& l) {
    return std::fabs(traffic_of({l.kernel, static_cast<int>(l.kernel->reads.size())}).share() - share);
  };
  return *std::min_element(std::begin(all), std::end(all),
                           [&](const Limit& a, const Limit& b) { return distance(a) < distance(b); });
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

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

Speed speed_of(const Subject& subject, Regime regime, int threads, int rounds) {
  const Limit limit = limit_for(traffic_of(subject).share());
  Timed kernel(subject, bytes_for(regime), threads);
  Timed loop({limit.kernel, static_cast<int>(limit.kernel->reads.size())}, bytes_for(regime), threads);
  std::vector<double> fractions, speeds, limits;
  for (int round = 0; round < rounds; ++round) {
    const double best = std::min(loop.seconds(limit.kernel->chosen()), loop.seconds(limit.cached_body));
    limits.push_back(loop.bytes() / best);
    speeds.push_back(kernel.bytes() / kernel.seconds(subject.kernel->chosen()));
    fractions.push_back(speeds.back() / limits.back());
  }
  const double speed = median(speeds);
  return {.bytes_per_s = speed,
          .limit_bytes_per_s = median(limits),
          .elements_per_s = speed / kernel.bytes() * kernel.elements(),
          .fraction_of_limit = median(fractions),
          .limit = limit.kernel->name};
}

}  // namespace trellis::kernels
