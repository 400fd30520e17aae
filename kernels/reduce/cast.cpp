#include "kernels/reduce/cast.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "kernels/dispatch/parallel.h"
#include "kernels/types/check_arguments.h"
#include "kernels/types/convert.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

struct Pair {
  DType from, to;
  Rounding rounding;
};

bool known(const Pair& p) {
  if (!is_float(p.to)) return is_float(p.from) && p.rounding == Rounding::nearest;
  return p.rounding == Rounding::nearest || p.to != DType::f64;
}

template <class T>
double nearest_double(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

// Like load, except that 64-bit integers which become f64 are rounded to nearest once.
double value_at(const Pair& p, const void* at) {
  if (p.to == DType::f64 && p.from == DType::i64) return nearest_double<std::int64_t>(at);
  if (p.to == DType::f64 && p.from == DType::u64) return nearest_double<std::uint64_t>(at);
  return load(p.from, at);
}

void cast_truth(const KernelArguments& s) {
  const Pair& p = *static_cast<const Pair*>(s.settings);
  const auto* src = static_cast<const std::byte*>(s.reads[0]);
  auto* dst = static_cast<std::byte*>(s.writes[0]);
  for (std::size_t i = 0; i < s.n; ++i) {
    const bool random = p.rounding == Rounding::stochastic;
    store(p.to, dst + i * size_of(p.to), value_at(p, src + i * size_of(p.from)), p.rounding,
          random ? random_for(s.key, s.first + i, random_bits(p.to)) : 0);
  }
}

constexpr std::size_t index(DType from, DType to, Rounding r) {
  return (static_cast<std::size_t>(from) * dtype_count + static_cast<std::size_t>(to)) * rounding_count +
         static_cast<std::size_t>(r);
}
constexpr std::size_t pair_count = dtype_count * dtype_count * rounding_count;

constexpr std::array<Pair, pair_count> pairs = [] {
  std::array<Pair, pair_count> all{};
  for (std::size_t i = 0; i < pair_count; ++i)
    all[i] = {static_cast<DType>(i / rounding_count / dtype_count),
              static_cast<DType>(i / rounding_count % dtype_count), static_cast<Rounding>(i % rounding_count)};
  return all;
}();

std::string name_of(const Pair& p) { return fmt::format("cast.{}.{}.{}", name(p.from), name(p.to), name(p.rounding)); }

const Registered casts([] {
  std::vector<Kernel> all;
  for (const Pair& p : pairs)
    if (known(p))
      all.push_back({.name = name_of(p), .reads = {p.from}, .writes = {p.to}, .settings = &p, .truth = cast_truth});
  return all;
});

}  // namespace

void cast(DType from, const void* src, DType to, void* dst, std::size_t n, const CastOptions& o) {
  static const auto table = [] {
    std::array<const Kernel*, pair_count> found{};
    for (std::size_t i = 0; i < pair_count; ++i)
      if (known(pairs[i])) found[i] = &kernel_named(name_of(pairs[i]));
    return found;
  }();
  const Rounding rounding = !is_float(to) || to == DType::f64 ? Rounding::nearest : o.rounding;
  const Kernel* kernel = table[index(from, to, rounding)];
  if (kernel == nullptr) text::refuse("cast: no conversion from {} to {}", name(from), name(to));
  check_threads("cast", o.threads);
  check_random("cast", o.random, n);
  const KernelOperand write{"dst", dst, bytes_of("cast", n, size_of(to))};
  const KernelOperand read{"src", src, bytes_of("cast", n, size_of(from))};
  check_operands("cast", {&write, 1}, {&read, 1}, true);
  void* const writes[] = {dst};
  const void* const reads[] = {src};
  run(*kernel,
      {.n = n,
       .writes = writes,
       .reads = reads,
       .sources = 1,
       .first = o.random.first,
       .key = random_key(o.random),
       .settings = kernel->settings},
      o.threads);
}

}  // namespace trellis::kernels
