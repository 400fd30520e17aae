#include "kernels/reduce/dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/reduce/sum_truth.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

constexpr DType types[] = {DType::f32, DType::bf16, DType::f16};

template <DType d>
void dot_truth(const KernelArguments& s) {
  sum_parts(s, 1, [&](std::size_t i, double* out) { *out = wide_at(d, s.reads[0], i) * wide_at(d, s.reads[1], i); });
}

template <DType d>
void squares_truth(const KernelArguments& s) {
  sum_parts(s, 1, [&](std::size_t i, double* out) { *out = wide_at(d, s.reads[0], i) * wide_at(d, s.reads[0], i); });
}

template <DType d>
void add_to(std::vector<Kernel>& all) {
  all.push_back({.name = fmt::format("dot.{}", name(d)),
                 .reads = {d, d},
                 .writes = {DType::f64},
                 .sums = true,
                 .truth = dot_truth<d>});
  all.push_back({.name = fmt::format("squares.{}", name(d)),
                 .reads = {d},
                 .writes = {DType::f64},
                 .sums = true,
                 .truth = squares_truth<d>});
}

const Registered dots([] {
  std::vector<Kernel> all;
  add_to<DType::f32>(all);
  add_to<DType::bf16>(all);
  add_to<DType::f16>(all);
  return all;
});

using Kernels = std::array<const Kernel*, std::size(types)>;

Kernels kernels_of(std::string_view op) {
  Kernels all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = &kernel_named(fmt::format("{}.{}", op, name(types[i])));
  return all;
}

double summed(std::string_view op, const Kernels& kernels, DType d, std::span<const KernelOperand> reads, std::size_t n,
              int threads) {
  const auto type = std::find(std::begin(types), std::end(types), d);
  if (type == std::end(types)) text::refuse("{}: {} is not supported; f32, bf16 and f16 are", op, name(d));
  check_threads(op, threads);
  check_operands(op, {}, reads, true);
  const void* const arrays[] = {reads.front().data, reads.back().data};
  std::vector<double> parts(parts_of(n));
  void* const writes[] = {parts.data()};
  run(*kernels[static_cast<std::size_t>(type - std::begin(types))],
      {.n = n, .writes = writes, .reads = arrays, .sources = static_cast<int>(reads.size())}, threads);
  return added_up(parts);
}

}  // namespace

double dot(DType d, const void* x, const void* y, std::size_t n, int threads) {
  const std::size_t bytes = bytes_of("dot", n, 8);
  const KernelOperand reads[] = {{"x", x, bytes / 8 * size_of(d)}, {"y", y, bytes / 8 * size_of(d)}};
  static const Kernels kernels = kernels_of("dot");
  return summed("dot", kernels, d, reads, n, threads);
}

double sum_of_squares(DType d, const void* x, std::size_t n, int threads) {
  const KernelOperand read{"x", x, bytes_of("squares", n, 8) / 8 * size_of(d)};
  static const Kernels kernels = kernels_of("squares");
  return summed("squares", kernels, d, {&read, 1}, n, threads);
}

}  // namespace trellis::kernels
