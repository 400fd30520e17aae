#include "kernels/reduce/elementwise.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/dispatch/parallel.h"
#include "kernels/types/check_arguments.h"
#include "kernels/types/convert.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

constexpr DType types[] = {DType::f32, DType::bf16, DType::f16};
constexpr float sample_factor = 0.3F;

float value_at(DType d, const void* array, std::size_t i) {
  return static_cast<float>(load(d, static_cast<const std::byte*>(array) + i * size_of(d)));
}

void put(DType d, Rounding r, const KernelArguments& s, std::size_t i, float value) {
  if (value != value) value = std::numeric_limits<float>::quiet_NaN();
  store(d, static_cast<std::byte*>(s.writes[0]) + i * size_of(d), value, r,
        r == Rounding::stochastic ? random_for(s.key, s.first + i, random_bits(d)) : 0);
}

template <DType d, Rounding r>
void scale_truth(const KernelArguments& s) {
  const float factor = *static_cast<const float*>(s.settings);
  for (std::size_t i = 0; i < s.n; ++i) put(d, r, s, i, factor * value_at(d, s.reads[0], i));
}

template <DType d, Rounding r>
void axpy_truth(const KernelArguments& s) {
  const float factor = *static_cast<const float*>(s.settings);
  for (std::size_t i = 0; i < s.n; ++i) {
    const float product = factor * value_at(d, s.reads[0], i);
    put(d, r, s, i, value_at(d, s.writes[0], i) + product);
  }
}

// settings: the bytes of one element.
template <std::size_t size>
void fill_truth(const KernelArguments& s) {
  for (std::size_t i = 0; i < s.n; ++i) std::memcpy(static_cast<std::byte*>(s.writes[0]) + i * size, s.settings, size);
}

constexpr std::uint64_t sample_fill = 0x1234'5678'9ABC'DEF0;

std::string name_of(std::string_view op, DType d, Rounding r) { return fmt::format("{}.{}.{}", op, name(d), name(r)); }

template <DType d, Rounding r>
void add_to(std::vector<Kernel>& all) {
  all.push_back({.name = name_of("scale", d, r),
                 .reads = {d},
                 .writes = {d},
                 .settings = &sample_factor,
                 .truth = scale_truth<d, r>});
  all.push_back({.name = name_of("axpy", d, r),
                 .reads = {d},
                 .writes = {d},
                 .updates = true,
                 .settings = &sample_factor,
                 .truth = axpy_truth<d, r>});
}

const Registered all_of_them([] {
  std::vector<Kernel> all;
  add_to<DType::f32, Rounding::nearest>(all);
  add_to<DType::bf16, Rounding::nearest>(all);
  add_to<DType::bf16, Rounding::stochastic>(all);
  add_to<DType::f16, Rounding::nearest>(all);
  add_to<DType::f16, Rounding::stochastic>(all);
  constexpr DType by_size[] = {DType::u8, DType::u16, DType::u32, DType::u64};
  constexpr Body truths[] = {fill_truth<1>, fill_truth<2>, fill_truth<4>, fill_truth<8>};
  for (int i = 0; i < 4; ++i)
    all.push_back({.name = fmt::format("fill.{}", name(by_size[i])),
                   .writes = {by_size[i]},
                   .settings = &sample_fill,
                   .truth = truths[i]});
  return all;
});

const Kernel& kernel_for(std::string_view op, DType d, Rounding r) {
  for (DType known : types)
    if (d == known && r != Rounding::truncate)
      return kernel_named(name_of(op, d, d == DType::f32 ? Rounding::nearest : r));
  text::refuse("{}: {} with {} rounding is not supported", op, name(d), name(r));
}

void apply(std::string_view op, DType d, double factor, const void* read, void* write, std::size_t n, bool in_place,
           const ElementwiseOptions& o) {
  const Kernel& kernel = kernel_for(op, d, o.rounding);
  check_threads(op, o.threads);
  check_random(op, o.random, n);
  const std::size_t bytes = bytes_of(op, n, size_of(d));
  const KernelOperand written{in_place ? "dst" : "y", write, bytes}, source{in_place ? "src" : "x", read, bytes};
  check_operands(op, {&written, 1}, {&source, 1}, in_place);
  const auto narrow = static_cast<float>(factor);
  run(kernel,
      {.n = n,
       .writes = &write,
       .reads = &read,
       .sources = 1,
       .first = o.random.first,
       .key = random_key(o.random),
       .settings = &narrow},
      o.threads);
}

}  // namespace

void fill(DType d, void* dst, std::size_t n, double value, int threads) {
  static const std::array<const Kernel*, 4> by_size = {&kernel_named("fill.u8"), &kernel_named("fill.u16"),
                                                       &kernel_named("fill.u32"), &kernel_named("fill.u64")};
  check_threads("fill", threads);
  const KernelOperand written{"dst", dst, bytes_of("fill", n, size_of(d))};
  check_operands("fill", {&written, 1}, {}, false);
  std::uint64_t element = 0;
  store(d, &element, value);
  run(*by_size[static_cast<std::size_t>(std::countr_zero(size_of(d)))], {.n = n, .writes = &dst, .settings = &element},
      threads);
}

void scale(DType d, double factor, const void* src, void* dst, std::size_t n, const ElementwiseOptions& o) {
  apply("scale", d, factor, src, dst, n, true, o);
}

void axpy(DType d, double factor, const void* x, void* y, std::size_t n, const ElementwiseOptions& o) {
  apply("axpy", d, factor, x, y, n, false, o);
}

}  // namespace trellis::kernels
