// Activation functions in vectors.
#pragma once

#include <array>

#include "kernels/lanes/elementary_lanes.h"
#include "kernels/lanes/float_load_store_lanes.h"
#include "kernels/lanes/walk_lanes.h"
#include "kernels/layers/activation.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

TRELLIS_INLINE F within(F x, float reach) { return at_least(at_most(x, reach), -reach); }

template <Activation op>
TRELLIS_INLINE F activated(F x) {
  if constexpr (op == Activation::silu) return at_least(x, -silu_reach) * sigmoid_lanes(x).value;
  if constexpr (op == Activation::gelu_erf) return at_least(x, -NormalTailConstants::most) * normal_lanes(x).below;
  const F c = within(x, gelu_reach);
  return at_least(x, -gelu_reach) * sigmoid_lanes(c * (gelu_a + gelu_b * (c * c))).value;
}

template <Activation op>
TRELLIS_INLINE F slope(F x) {
  if constexpr (op == Activation::silu) {
    const SigmoidLanes s = sigmoid_lanes(x);
    return s.value * (1.0F + within(x, silu_reach) * s.rest);
  }
  if constexpr (op == Activation::gelu_erf) {
    const NormalCdfPdfLanes n = normal_lanes(x);
    return n.below + within(x, NormalTailConstants::most) * n.density;
  }
  const F c = within(x, gelu_reach);
  const SigmoidLanes s = sigmoid_lanes(c * (gelu_a + gelu_b * (c * c)));
  return s.value + (c * (gelu_a + gelu_3b * (c * c))) * (s.value * s.rest);
}

// Writes value(at, which) to the only written operand.
template <DType type, class Value>
TRELLIS_INLINE void written(const KernelArguments& s, const Value& value) {
  void* const dst = s.writes[0];
  walk<2, false>(s, size_of(type), [=](auto streams) {
    return [=](std::ptrdiff_t at, auto which, auto) __attribute__((always_inline)) {
      write<format_of(type), Rounding::nearest, decltype(streams)::value>(dst, at, canonical(value(at, which)), U{},
                                                                          which);
    };
  });
}

template <Activation op, DType type>
void activate(const KernelArguments& s) {
  const void* const x = s.reads[0];
  written<type>(
      s, [=](std::ptrdiff_t at, auto which)
             __attribute__((always_inline)) { return activated<op>(read<format_of(type)>(x, at, which)); });
}

template <Activation op, DType type>
void activate_gradient(const KernelArguments& s) {
  const void* const dy = s.reads[0];
  const void* const x = s.reads[1];
  written<type>(
      s, [=](std::ptrdiff_t at, auto which) __attribute__((always_inline)) {
        return read<format_of(type)>(dy, at, which) * slope<op>(read<format_of(type)>(x, at, which));
      });
}

template <DType type>
void swiglu(const KernelArguments& s) {
  const void* const gate = s.reads[0];
  const void* const up = s.reads[1];
  written<type>(
      s, [=](std::ptrdiff_t at, auto which) __attribute__((always_inline)) {
        return activated<Activation::silu>(read<format_of(type)>(gate, at, which)) *
               read<format_of(type)>(up, at, which);
      });
}

template <DType type>
void swiglu_gradient(const KernelArguments& whole) {
  constexpr Format format = format_of(type);
  KernelArguments s = whole;
  s.streaming = false;  // the two written operands need not be aligned alike
  const void* const* const reads = s.reads;
  void* const* const writes = s.writes;
  walk<2, false>(s, size_of(type), [=](auto) {
    return [=](std::ptrdiff_t at, auto which, auto) __attribute__((always_inline)) {
      const F dy = read<format>(reads[0], at, which);
      const F gate = read<format>(reads[1], at, which), up = read<format>(reads[2], at, which);
      const F value = activated<Activation::silu>(gate), steep = slope<Activation::silu>(gate);
      write<format, Rounding::nearest, false>(writes[0], at, canonical((dy * up) * steep), U{}, which);
      write<format, Rounding::nearest, false>(writes[1], at, canonical(dy * value), U{}, which);
    };
  });
}

template <DType type>
constexpr std::array<Twin, 8> twins_of = {{
    {KernelName::of("silu", name(type)), activate<Activation::silu, type>},
    {KernelName::of("gelu_erf", name(type)), activate<Activation::gelu_erf, type>},
    {KernelName::of("gelu_tanh", name(type)), activate<Activation::gelu_tanh, type>},
    {KernelName::of("silu_gradient", name(type)), activate_gradient<Activation::silu, type>},
    {KernelName::of("gelu_erf_gradient", name(type)), activate_gradient<Activation::gelu_erf, type>},
    {KernelName::of("gelu_tanh_gradient", name(type)), activate_gradient<Activation::gelu_tanh, type>},
    {KernelName::of("swiglu", name(type)), swiglu<type>},
    {KernelName::of("swiglu_gradient", name(type)), swiglu_gradient<type>},
}};

const Registered registered[] = {{this_isa, twins_of<DType::f32>}, {this_isa, twins_of<DType::bf16>}};

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
