// What every optimizer is told of a tensor, or of a shard of one: how its parameters are kept between steps, and its
// gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/types/dtype.h"
#include "kernels/types/random.h"

namespace trellis::kernels {

// An update is computed in f32 from the kept value; this says how the result is kept.
enum class WeightStorage : std::uint8_t {
  f32,              // as it is
  f32_copy,         // as it is, and a bf16 copy to nearest is written beside it
  bf16_nearest,     // bf16: an update below half a step is lost
  bf16_stochastic,  // bf16, exact on average; no other state
  bf16_kahan        // bf16 to nearest and, in bf16 too, what the rounding left over: about 16 bits of precision
};
inline constexpr std::size_t keep_count = 5;

constexpr std::string_view name(WeightStorage k) {
  constexpr std::string_view names[] = {"f32", "f32_copy", "bf16_nearest", "bf16_stochastic", "bf16_kahan"};
  return names[static_cast<std::size_t>(k)];
}

constexpr DType type_of(WeightStorage k) { return k <= WeightStorage::f32_copy ? DType::f32 : DType::bf16; }

struct Weights {
  WeightStorage keep = WeightStorage::f32;
  void* values = nullptr;
  void* copy = nullptr;  // of f32_copy, only written
  void* rest = nullptr;  // of bf16_kahan, zeros before the first step
};

struct Gradient {
  DType type = DType::f32;  // or bf16
  const void* values = nullptr;
  double scale = 1;  // each element is first multiplied by it: clipping, an average, a loss scale
};

// First and second moments: in f32, or in bf16 rounded stochastically (to nearest the second would cease to decay).
struct Moments {
  DType type = DType::f32;
  void* first = nullptr;
  void* second = nullptr;
};

// The random keys of state that is rounded stochastically. Each optimizer's settings type begins with them.
struct StateRandomKeys {
  RandomKey keys[2] = {};
};

StateRandomKeys state_keys(const Random&);

}  // namespace trellis::kernels
