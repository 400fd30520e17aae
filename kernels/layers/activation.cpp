#include "kernels/layers/activation.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "kernels/dispatch/parallel.h"
#include "kernels/layers/elementary.h"
#include "kernels/layers/rows.h"
#include "kernels/types/check_arguments.h"

namespace trellis::kernels {
namespace {

float at_least(float x, float least) { return x < least ? least : x; }
float within(float x, float reach) { return at_least(x > reach ? reach : x, -reach); }

struct Silu {
  static float value(float x) { return at_least(x, -silu_reach) * sigmoid(x).value; }
  static float slope(float x) {
    const Sigmoid s = sigmoid(x);
    return s.value * (1 + within(x, silu_reach) * s.rest);
  }
};

struct GeluErf {
  static float value(float x) { return at_least(x, -NormalTailConstants::most) * normal(x).below; }
  static float slope(float x) {
    const NormalCdfPdf n = normal(x);
    return n.below + within(x, NormalTailConstants::most) * n.density;
  }
};

struct GeluTanh {
  static float value(float x) {
    const float c = within(x, gelu_reach);
    return at_least(x, -gelu_reach) * sigmoid(c * (gelu_a + gelu_b * (c * c))).value;
  }
  static float slope(float x) {
    const float c = within(x, gelu_reach);
    const Sigmoid s = sigmoid(c * (gelu_a + gelu_b * (c * c)));
    return s.value + (c * (gelu_a + gelu_3b * (c * c))) * (s.value * s.rest);
  }
};

template <class Function, DType d>
void truth(const KernelArguments& s) {
  for (std::size_t i = 0; i < s.n; ++i) put_element(d, s.writes[0], i, Function::value(element(d, s.reads[0], i)));
}

template <class Function, DType d>
void gradient_truth(const KernelArguments& s) {
  for (std::size_t i = 0; i < s.n; ++i)
    put_element(d, s.writes[0], i, element(d, s.reads[0], i) * Function::slope(element(d, s.reads[1], i)));
}

template <DType d>
void swiglu_truth(const KernelArguments& s) {
  for (std::size_t i = 0; i < s.n; ++i)
    put_element(d, s.writes[0], i, Silu::value(element(d, s.reads[0], i)) * element(d, s.reads[1], i));
}

template <DType d>
void swiglu_gradient_truth(const KernelArguments& s) {
  for (std::size_t i = 0; i < s.n; ++i) {
    const float dy = element(d, s.reads[0], i), gate = element(d, s.reads[1], i), up = element(d, s.reads[2], i);
    put_element(d, s.writes[0], i, (dy * up) * Silu::slope(gate));
    put_element(d, s.writes[1], i, dy * Silu::value(gate));
  }
}

template <class Function, DType d>
void add_function(std::vector<Kernel>& all, Activation a) {
  all.push_back(
      {.name = fmt::format("{}.{}", name(a), name(d)), .reads = {d}, .writes = {d}, .truth = truth<Function, d>});
  all.push_back({.name = fmt::format("{}_gradient.{}", name(a), name(d)),
                 .reads = {d, d},
                 .writes = {d},
                 .truth = gradient_truth<Function, d>});
}

template <DType d>
void add_to(std::vector<Kernel>& all) {
  add_function<Silu, d>(all, Activation::silu);
  add_function<GeluErf, d>(all, Activation::gelu_erf);
  add_function<GeluTanh, d>(all, Activation::gelu_tanh);
  all.push_back({.name = fmt::format("swiglu.{}", name(d)), .reads = {d, d}, .writes = {d}, .truth = swiglu_truth<d>});
  all.push_back({.name = fmt::format("swiglu_gradient.{}", name(d)),
                 .reads = {d, d, d},
                 .writes = {d, d},
                 .truth = swiglu_gradient_truth<d>});
}

const Registered registered({add_to<DType::f32>, add_to<DType::bf16>});

struct Named {
  std::string_view name;
  const void* data;
};

// Checks n elements of each operand and calls the kernel of that name and type.
void call(std::string_view kernel, DType d, std::initializer_list<Named> written, std::initializer_list<Named> read,
          std::size_t n, int threads) {
  check_table(kernel, d, n, 1);
  check_threads(kernel, threads);
  std::array<KernelOperand, 3> outs, ins;
  std::array<void*, 3> writes;
  std::array<const void*, 3> reads;
  std::size_t w = 0, r = 0;
  for (const Named& o : written) outs[w] = {o.name, o.data, n * size_of(d)}, writes[w++] = const_cast<void*>(o.data);
  for (const Named& o : read) ins[r] = {o.name, o.data, n * size_of(d)}, reads[r++] = o.data;
  check_operands(kernel, {outs.data(), w}, {ins.data(), r}, true);
  run(kernel_named(fmt::format("{}.{}", kernel, name(d))),
      {.n = n, .writes = writes.data(), .reads = reads.data(), .sources = static_cast<int>(r)}, threads);
}

}  // namespace

void activate(Activation a, DType d, const void* x, void* y, std::size_t n, int threads) {
  call(name(a), d, {{"y", y}}, {{"x", x}}, n, threads);
}

void activate_gradient(Activation a, DType d, const void* dy, const void* x, void* dx, std::size_t n, int threads) {
  call(fmt::format("{}_gradient", name(a)), d, {{"dx", dx}}, {{"dy", dy}, {"x", x}}, n, threads);
}

void swiglu(DType d, const void* gate, const void* up, void* y, std::size_t n, int threads) {
  call("swiglu", d, {{"y", y}}, {{"gate", gate}, {"up", up}}, n, threads);
}

void swiglu_gradient(DType d, const void* dy, const void* gate, const void* up, void* dgate, void* dup, std::size_t n,
                     int threads) {
  call("swiglu_gradient", d, {{"dgate", dgate}, {"dup", dup}}, {{"dy", dy}, {"gate", gate}, {"up", up}}, n, threads);
}

}  // namespace trellis::kernels
