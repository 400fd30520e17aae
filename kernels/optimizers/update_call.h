// What optimizers share: their checks, the truth of how a parameter is kept, the call of their kernels.
#pragma once

#include <span>
#include <vector>

#include "kernels/dispatch/registry.h"
#include "kernels/optimizers/parameter.h"
#include "kernels/types/check_arguments.h"

namespace trellis::kernels {

// A kernel's written operands: [copy,] values [, rest], then the optimizer's own state.
constexpr std::size_t values_operand(WeightStorage k) { return k == WeightStorage::f32_copy ? 1 : 0; }
constexpr std::size_t state_operand(WeightStorage k) {
  return k == WeightStorage::f32_copy || k == WeightStorage::bf16_kahan ? 2 : 1;
}
std::vector<DType> written_types(WeightStorage, std::span<const DType> states);

// For reference implementations. value_at() reads an element, kept_at() reads a parameter from how it is stored, and
// keep_at() stores a new value of it.
float value_at(DType, const void* array, std::size_t i);
float kept_at(WeightStorage, const void* values, const void* rest, std::size_t i);
void keep_at(WeightStorage, const KernelArguments&, std::size_t i, float);  // random bits by the arguments' key
// bf16 is rounded stochastically, by key number `state` of the settings; a NaN becomes the canonical one.
void put_state(DType, const KernelArguments&, std::size_t written, int state, std::size_t i, float);

// Each throws std::invalid_argument with the value in it.
void check_at_least_zero(std::string_view kernel, std::string_view what, double value);
void check_beta(std::string_view kernel, std::string_view what, double value);    // in [0, 1)
void check_scale(std::string_view kernel, const Gradient&);                       // finite, as an f32 too
void check_settled(std::string_view kernel, std::string_view what, float value);  // still finite as an f32

struct StateOperand {
  std::string_view name;
  DType type;
  void* data;
};

// Checks the memory, the threads and the random indices, then runs the kernel.
struct UpdateCall {
  std::string_view optimizer;
  const Kernel& kernel;
  const Weights& weights;
  const Gradient& gradient;
  std::span<const StateOperand> states;
  std::size_t n;
  const Random& random;
  int threads;
  const void* settings;
};
void run_update(const UpdateCall&);

// f32 is 0 and bf16 1; anything else throws.
std::size_t narrow_index(std::string_view kernel, std::string_view what, DType);
inline constexpr DType narrow_types[] = {DType::f32, DType::bf16};
// The number of this WeightStorage; throws if it is none of the five.
std::size_t keep_index(std::string_view kernel, WeightStorage);

}  // namespace trellis::kernels
