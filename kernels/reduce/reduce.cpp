#include "kernels/reduce/reduce.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/dispatch/parallel.h"
#include "kernels/types/check_arguments.h"
#include "kernels/types/convert.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

bool known(const ReduceSettings& r) {
  if (!is_float(r.type) || r.type == DType::f64 || r.type == DType::f32) return r.rounding == Rounding::nearest;
  return r.rounding != Rounding::truncate;
}

// Applies the operation to two numbers of the type T in which the call accumulates.
template <class T>
T joined(Reduction op, T a, T b) {
  switch (op) {
    case Reduction::prod:
      return static_cast<T>(a * b);
    case Reduction::min:
      if constexpr (std::is_floating_point_v<T>)
        if (a == b) return std::signbit(a) ? a : b;
      return b < a ? b : a;
    case Reduction::max:
      if constexpr (std::is_floating_point_v<T>)
        if (a == b) return std::signbit(a) ? b : a;
      return b > a ? b : a;
    default:
      return static_cast<T>(a + b);
  }
}

template <class T, class Load>
T element(const ReduceSettings& r, int sources, const Load& load_source) {
  const T factor = static_cast<T>(r.op == Reduction::scaled_sum ? r.factor : 1);
  T sum{};
  bool nan = false;
  for (int k = 0; k < sources; ++k) {
    const T value = static_cast<T>(load_source(k) * factor);
    nan = nan || value != value;
    sum = k == 0 ? value : joined(r.op, sum, value);
  }
  if (r.op == Reduction::avg) sum = static_cast<T>(sum / static_cast<T>(sources));
  if constexpr (std::is_floating_point_v<T>)
    if (nan || sum != sum) return std::numeric_limits<T>::quiet_NaN();
  return sum;
}

template <class T>
void whole_truth(const KernelArguments& s, const ReduceSettings& r) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  for (std::size_t i = 0; i < s.n; ++i) {
    const auto at = [&](int k) {
      T value;
      std::memcpy(&value, static_cast<const std::byte*>(s.reads[k]) + i * sizeof(T), sizeof value);
      return value;
    };
    T out;
    if constexpr (std::is_floating_point_v<T>) {
      out = element<T>(r, s.sources, at);
    } else if (r.op == Reduction::min || r.op == Reduction::max) {
      out = at(0);
      for (int k = 1; k < s.sources; ++k) out = joined(r.op, out, at(k));
    } else {
      const auto factor = static_cast<std::uint64_t>(
          static_cast<T>(r.op == Reduction::scaled_sum ? static_cast<std::int64_t>(r.factor) : std::int64_t{1}));
      std::uint64_t sum = r.op == Reduction::prod ? 1 : 0;
      for (int k = 0; k < s.sources; ++k) sum = joined(r.op, sum, static_cast<std::uint64_t>(at(k)) * factor);
      out = static_cast<T>(sum);
      if (r.op == Reduction::avg) out = static_cast<T>(static_cast<Wide>(out) / static_cast<Wide>(s.sources));
    }
    std::memcpy(static_cast<std::byte*>(s.writes[0]) + i * sizeof(T), &out, sizeof out);
  }
}

void narrow_truth(const KernelArguments& s, const ReduceSettings& r) {
  const std::size_t size = size_of(r.type);
  for (std::size_t i = 0; i < s.n; ++i) {
    const auto at = [&](int k) {
      return static_cast<float>(load(r.type, static_cast<const std::byte*>(s.reads[k]) + i * size));
    };
    const float out = element<float>(r, s.sources, at);
    const bool random = r.rounding == Rounding::stochastic;
    store(r.type, static_cast<std::byte*>(s.writes[0]) + i * size, out, r.rounding,
          random ? random_for(s.key, s.first + i, random_bits(r.type)) : 0);
  }
}

template <class T>
void truth_of(const KernelArguments& s) {
  whole_truth<T>(s, *static_cast<const ReduceSettings*>(s.settings));
}

void truth_narrow(const KernelArguments& s) { narrow_truth(s, *static_cast<const ReduceSettings*>(s.settings)); }

Body truth_for(DType d) {
  constexpr Body whole[] = {truth_of<std::int8_t>,   truth_of<std::uint8_t>, truth_of<std::int16_t>,
                            truth_of<std::uint16_t>, truth_of<std::int32_t>, truth_of<std::uint32_t>,
                            truth_of<std::int64_t>,  truth_of<std::uint64_t>};
  if (d == DType::f64) return truth_of<double>;
  if (d == DType::f32) return truth_of<float>;
  if (is_float(d)) return truth_narrow;
  return whole[static_cast<std::size_t>(d) - static_cast<std::size_t>(DType::i8)];
}

constexpr std::size_t count = reduction_count * dtype_count * rounding_count;
constexpr double sample_factor = 0.3;

constexpr std::array<ReduceSettings, count> samples = [] {
  std::array<ReduceSettings, count> all{};
  for (std::size_t i = 0; i < count; ++i) {
    const auto type = static_cast<DType>(i / rounding_count % dtype_count);
    all[i] = {static_cast<Reduction>(i / rounding_count / dtype_count), type, static_cast<Rounding>(i % rounding_count),
              is_float(type) ? sample_factor : 3};
  }
  return all;
}();

std::string name_of(const ReduceSettings& r) {
  return fmt::format("reduce.{}.{}.{}", name(r.op), name(r.type), name(r.rounding));
}

const Registered reductions([] {
  std::vector<Kernel> all;
  for (const ReduceSettings& r : samples)
    if (known(r))
      all.push_back({.name = name_of(r),
                     .reads = {r.type},
                     .writes = {r.type},
                     .many = true,
                     .settings = &r,
                     .truth = truth_for(r.type)});
  return all;
});

const Kernel& kernel_for(const ReduceSettings& r) {
  static const auto table = [] {
    std::array<const Kernel*, count> found{};
    for (std::size_t i = 0; i < count; ++i)
      if (known(samples[i])) found[i] = &kernel_named(name_of(samples[i]));
    return found;
  }();
  const std::size_t row = static_cast<std::size_t>(r.op) * dtype_count + static_cast<std::size_t>(r.type);
  const Kernel* found = table[row * rounding_count + static_cast<std::size_t>(r.rounding)];
  if (found == nullptr) text::refuse("reduce: no {} rounding for {}", name(r.rounding), name(r.type));
  return *found;
}

void check_factor(const ReduceSettings& r) {
  if (r.op != Reduction::scaled_sum || is_float(r.type)) return;
  if (!(std::fabs(r.factor) < 0x1p53)) text::refuse("reduce: {} is no factor for {}", r.factor, name(r.type));
}

}  // namespace

Reduction reduction_named(std::string_view word) {
  std::string known_names;
  for (std::size_t i = 0; i < reduction_count; ++i) {
    const auto r = static_cast<Reduction>(i);
    if (name(r) == word) return r;
    known_names += fmt::format("{}{}", i == 0 ? "" : ", ", name(r));
  }
  text::refuse("no reduction is called '{}'; known are {}", word, known_names);
}

void reduce(Reduction op, DType type, std::span<const void* const> sources, void* dst, std::size_t n,
            const ReduceOptions& o) {
  const bool exact_type = !is_float(type) || type == DType::f64 || type == DType::f32;
  const ReduceSettings settings{op, type, exact_type ? Rounding::nearest : o.rounding, o.factor};
  const Kernel& kernel = kernel_for(settings);
  if (sources.empty() || sources.size() > most_sources)
    text::refuse("reduce: {} sources; expected 1 to {}", sources.size(), most_sources);
  check_factor(settings);
  check_threads("reduce", o.threads);
  check_random("reduce", o.random, n);
  const std::size_t bytes = bytes_of("reduce", n, size_of(type));
  for (const void* source : sources) {
    if (plainly_right(dst, source, bytes)) continue;
    const KernelOperand write{"dst", dst, bytes}, read{"a source", source, bytes};
    check_operands("reduce", {&write, 1}, {&read, 1}, true);
  }
  void* const writes[] = {dst};
  run(kernel,
      {.n = n,
       .writes = writes,
       .reads = sources.data(),
       .sources = static_cast<int>(sources.size()),
       .first = o.random.first,
       .key = settings.rounding == Rounding::stochastic ? random_key(o.random) : RandomKey{},
       .settings = &settings,
       .streaming = o.stores == Stores::streaming},
      o.threads);
}

}  // namespace trellis::kernels
