#include "kernels/optimizers/lamb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/optimizers/update_call.h"
#include "kernels/reduce/sum_truth.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

const LambSettings& settings_in(const KernelArguments& s) { return *static_cast<const LambSettings*>(s.settings); }

float direction(const LambSettings& a, float p, float m, float v) {
  const float below = std::sqrt(v) * a.root + a.epsilon;
  return (m * a.unbias) / below + a.decay * p;
}

template <DType gradient>
void moments_truth(const KernelArguments& s) {
  const LambSettings& a = settings_in(s);
  for (std::size_t i = 0; i < s.n; ++i) {
    const float g = value_at(gradient, s.reads[0], i) * a.scale;
    put_state(DType::f32, s, 0, 0, i, a.beta1 * value_at(DType::f32, s.writes[0], i) + a.rest1 * g);
    put_state(DType::f32, s, 1, 1, i, a.beta2 * value_at(DType::f32, s.writes[1], i) + a.rest2 * (g * g));
  }
}

template <WeightStorage keep>
void squares_truth(const KernelArguments& s) {
  constexpr int m = keep == WeightStorage::bf16_kahan ? 2 : 1;
  sum_parts(s, 2, [&](std::size_t i, double* out) {
    const float p = kept_at(keep, s.reads[0], s.reads[1], i);
    const double u =
        direction(settings_in(s), p, value_at(DType::f32, s.reads[m], i), value_at(DType::f32, s.reads[m + 1], i));
    out[0] = double{p} * p;
    out[1] = u * u;
  });
}

template <WeightStorage keep>
void apply_truth(const KernelArguments& s) {
  const LambSettings& a = settings_in(s);
  for (std::size_t i = 0; i < s.n; ++i) {
    const float p =
        kept_at(keep, s.writes[values_operand(keep)], keep == WeightStorage::bf16_kahan ? s.writes[1] : nullptr, i);
    const float u = direction(a, p, value_at(DType::f32, s.reads[0], i), value_at(DType::f32, s.reads[1], i));
    keep_at(keep, s, i, p - a.rate * u);
  }
}

LambSettings settings_of(double scale, double trust, const LambOptions& o) {
  const auto f32 = [](double value) { return static_cast<float>(value); };
  const auto unbiased = [&](double beta) {
    return o.bias_correction ? 1 / (1 - std::pow(beta, static_cast<double>(o.step))) : 1;
  };
  return {.random = state_keys(o.random),
          .scale = f32(scale),
          .beta1 = f32(o.beta1),
          .rest1 = f32(1 - o.beta1),
          .beta2 = f32(o.beta2),
          .rest2 = f32(1 - o.beta2),
          .unbias = f32(unbiased(o.beta1)),
          .root = f32(std::sqrt(unbiased(o.beta2))),
          .epsilon = f32(o.epsilon),
          .decay = f32(o.weight_decay),
          .rate = f32(o.learning_rate * trust)};
}

const LambSettings& sample() {
  static const LambSettings settings = settings_of(0.75, 1.5, {.step = 10});
  return settings;
}

// Returns the WeightStorage that stands for all that read parameters alike: f32_copy and bf16_stochastic differ only in
// what they write.
constexpr WeightStorage as_read(WeightStorage k) {
  if (k == WeightStorage::f32_copy) return WeightStorage::f32;
  return k == WeightStorage::bf16_stochastic ? WeightStorage::bf16_nearest : k;
}

template <WeightStorage keep>
void add_to(std::vector<Kernel>& all) {
  constexpr DType f32 = DType::f32;
  all.push_back({.name = fmt::format("lamb.apply.{}", name(keep)),
                 .reads = {f32, f32},
                 .writes = written_types(keep, {}),
                 .updates = true,
                 .copies = keep == WeightStorage::f32_copy,
                 .settings = &sample(),
                 .truth = apply_truth<keep>});
  if (as_read(keep) != keep) return;
  std::vector<DType> reads = written_types(keep, std::array{f32, f32});
  all.push_back({.name = fmt::format("lamb.squares.{}", name(keep)),
                 .reads = std::move(reads),
                 .writes = {DType::f64, DType::f64},
                 .sums = true,
                 .settings = &sample(),
                 .truth = squares_truth<keep>});
}

template <DType gradient>
Kernel moments_kernel() {
  return {.name = fmt::format("lamb.moments.{}", name(gradient)),
          .reads = {gradient},
          .writes = {DType::f32, DType::f32},
          .updates = true,
          .settings = &sample(),
          .truth = moments_truth<gradient>};
}

const Registered lambs([] {
  std::vector<Kernel> all{moments_kernel<DType::f32>(), moments_kernel<DType::bf16>()};
  [&]<std::size_t... k>(std::index_sequence<k...>) { (add_to<static_cast<WeightStorage>(k)>(all), ...); }
  (std::make_index_sequence<keep_count>{});
  return all;
});

struct Known {
  std::array<const Kernel*, std::size(narrow_types)> moments;
  std::array<const Kernel*, keep_count> squares, apply;
};

const Known& known() {
  static const Known all = [] {
    Known k{};
    for (std::size_t i = 0; i < k.moments.size(); ++i)
      k.moments[i] = &kernel_named(fmt::format("lamb.moments.{}", name(narrow_types[i])));
    for (std::size_t i = 0; i < keep_count; ++i) {
      const auto keep = static_cast<WeightStorage>(i);
      k.squares[i] = &kernel_named(fmt::format("lamb.squares.{}", name(as_read(keep))));
      k.apply[i] = &kernel_named(fmt::format("lamb.apply.{}", name(keep)));
    }
    return k;
  }();
  return all;
}

void check(const Moments& m, const LambOptions& o) {
  check_at_least_zero("lamb", "learning_rate", o.learning_rate);
  check_beta("lamb", "beta1", o.beta1);
  check_beta("lamb", "beta2", o.beta2);
  check_at_least_zero("lamb", "epsilon", o.epsilon);
  check_at_least_zero("lamb", "weight_decay", o.weight_decay);
  if (o.step == 0) throw std::invalid_argument("lamb: step is 0; steps are counted from 1");
  if (m.type != DType::f32) text::refuse("lamb: the moments can't be {}; expected f32", name(m.type));
  check_threads("lamb", o.threads);
  const LambSettings s = settings_of(1, 1, o);
  check_settled("lamb", "1 / (1 - beta1^step)", s.unbias);
  check_settled("lamb", "1 / sqrt(1 - beta2^step)", s.root);
}

// Up to four operands of a kernel, for example those that lamb.squares reads, in its order.
struct Places {
  std::array<KernelOperand, 4> all;
  std::size_t count = 0;
  void add(std::string_view what, const void* data, std::size_t n, DType type) {
    all[count++] = {what, data, bytes_of("lamb", n, size_of(type))};
  }
  std::span<const KernelOperand> span() const { return {all.data(), count}; }
};

Places read_by_squares(const Weights& w, const Moments& m, std::size_t n) {
  Places p;
  p.add("the parameters", w.values, n, type_of(w.keep));
  if (w.keep == WeightStorage::bf16_kahan) p.add("the parameters' rest", w.rest, n, DType::bf16);
  p.add("the first moments", m.first, n, DType::f32);
  p.add("the second moments", m.second, n, DType::f32);
  return p;
}

struct Applied {
  Places written, read;
};

Applied check_apply(const Weights& w, const Moments& m, std::size_t n, const LambOptions& o) {
  check(m, o);
  keep_index("lamb", w.keep);
  check_random("lamb", o.random, n);
  Applied p;
  if (w.keep == WeightStorage::f32_copy) p.written.add("the bf16 copy", w.copy, n, DType::bf16);
  p.written.add("the parameters", w.values, n, type_of(w.keep));
  if (w.keep == WeightStorage::bf16_kahan) p.written.add("the parameters' rest", w.rest, n, DType::bf16);
  p.read.add("the first moments", m.first, n, DType::f32);
  p.read.add("the second moments", m.second, n, DType::f32);
  check_operands("lamb", p.written.span(), p.read.span(), false);
  return p;
}

// Runs both kernels of the first pass on one part, so that the second still finds it in a cache.
void first_pass(std::size_t part, const Kernel& moments, const Kernel& squares, const Gradient& g, const Places& p,
                std::size_t n, double* const* sums, const LambSettings& settings) {
  const std::size_t begin = part * part_elements, count = std::min(n - begin, part_elements);
  std::array<const void*, 4> reads;
  for (std::size_t i = 0; i < p.count; ++i)
    reads[i] = static_cast<const std::byte*>(p.all[i].data) + begin * size_of(squares.reads[i]);
  void* const updated[] = {const_cast<void*>(reads[p.count - 2]), const_cast<void*>(reads[p.count - 1])};
  const void* const gradient = static_cast<const std::byte*>(g.values) + begin * size_of(g.type);
  moments.chosen()({.n = count, .writes = updated, .reads = &gradient, .sources = 1, .settings = &settings});
  void* const to[] = {sums[0] + part, sums[1] + part};
  squares.chosen()(
      {.n = count, .writes = to, .reads = reads.data(), .sources = static_cast<int>(p.count), .settings = &settings});
}

}  // namespace

LambSquaredNorms lamb_moments(const Weights& w, const Gradient& g, const Moments& m, std::size_t n,
                              const LambOptions& o) {
  check(m, o);
  check_scale("lamb", g);
  keep_index("lamb", w.keep);
  const std::size_t narrow = narrow_index("lamb", "the gradient", g.type);
  const Places places = read_by_squares(w, m, n);
  Places read;
  read.add("the gradient", g.values, n, g.type);
  for (const KernelOperand& kept : places.span().first(places.count - 2)) read.all[read.count++] = kept;
  check_operands("lamb", places.span().last(2), read.span(), false);
  const Kernel& moments = *known().moments[narrow];
  const Kernel& squares = *known().squares[static_cast<std::size_t>(as_read(w.keep))];
  const LambSettings settings = settings_of(g.scale, 1, o);
  std::vector<double> parts[2];
  for (auto& some : parts) some.resize(parts_of(n));
  double* const sums[] = {parts[0].data(), parts[1].data()};
  parallel(o.threads, parts_of(n), [&](std::size_t from, std::size_t to) {
    for (std::size_t part = from; part < to; ++part) first_pass(part, moments, squares, g, places, n, sums, settings);
  });
  return {.parameters = added_up(parts[0]), .direction = added_up(parts[1])};
}

double trust_ratio(const LambSquaredNorms& sums) {
  if (sums.parameters < 0 || sums.direction < 0)
    text::refuse("lamb: sums of squares {} and {}; expected none below 0", sums.parameters, sums.direction);
  if (!std::isfinite(sums.parameters) || !std::isfinite(sums.direction))
    return std::numeric_limits<double>::quiet_NaN();
  return sums.parameters == 0 || sums.direction == 0 ? 1 : std::sqrt(sums.parameters) / std::sqrt(sums.direction);
}

void lamb_apply(const Weights& w, const Moments& m, double trust, std::size_t n, const LambOptions& o) {
  const Applied places = check_apply(w, m, n, o);
  if (trust < 0) text::refuse("lamb: trust is {}; expected a number >= 0", trust);
  const LambSettings settings = settings_of(1, trust, o);
  void* writes[2];
  for (std::size_t i = 0; i < places.written.count; ++i) writes[i] = const_cast<void*>(places.written.all[i].data);
  const void* const reads[] = {m.first, m.second};
  run(*known().apply[static_cast<std::size_t>(w.keep)],
      {.n = n,
       .writes = writes,
       .reads = reads,
       .sources = 2,
       .first = o.random.first,
       .key = random_key(o.random),
       .settings = &settings},
      o.threads);
}

double lamb(const Weights& w, const Gradient& g, const Moments& m, std::size_t n, const LambOptions& o) {
  check_apply(w, m, n, o);  // before anything is written
  const double trust = trust_ratio(lamb_moments(w, g, m, n, o));
  lamb_apply(w, m, trust, n, o);
  return trust;
}

}  // namespace trellis::kernels
