#include "kernels/optimizers/update_call.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "kernels/dispatch/parallel.h"
#include "kernels/types/convert.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

std::byte* element(void* array, DType d, std::size_t i) { return static_cast<std::byte*>(array) + i * size_of(d); }

float canonical(float value) { return value != value ? std::numeric_limits<float>::quiet_NaN() : value; }

constexpr std::size_t most_written = 5;

}  // namespace

StateRandomKeys state_keys(const Random& random) {
  const RandomKey k = random_key(random);
  const auto word = [](std::uint64_t v, int up) { return static_cast<std::uint32_t>(v >> up); };
  StateRandomKeys all;
  for (std::uint32_t state = 0; state < 2; ++state) {
    const Block b =
        philox<10>({word(k.start, 0), word(k.start, 32), word(k.inner, 0), word(k.inner, 32)}, {state + 1, 0});
    all.keys[state] = {b[0] | std::uint64_t{b[1]} << 32, b[2] | std::uint64_t{b[3]} << 32};
  }
  return all;
}

std::vector<DType> written_types(WeightStorage k, std::span<const DType> states) {
  std::vector<DType> types;
  if (k == WeightStorage::f32_copy) types.push_back(DType::bf16);
  types.push_back(type_of(k));
  if (k == WeightStorage::bf16_kahan) types.push_back(DType::bf16);
  types.insert(types.end(), states.begin(), states.end());
  return types;
}

float value_at(DType d, const void* array, std::size_t i) {
  return static_cast<float>(load(d, static_cast<const std::byte*>(array) + i * size_of(d)));
}

float kept_at(WeightStorage k, const void* values, const void* rest, std::size_t i) {
  const float value = value_at(type_of(k), values, i);
  return k == WeightStorage::bf16_kahan ? value + value_at(DType::bf16, rest, i) : value;
}

void keep_at(WeightStorage k, const KernelArguments& s, std::size_t i, float value) {
  value = canonical(value);
  void* const values = s.writes[values_operand(k)];
  const bool random = k == WeightStorage::bf16_stochastic;
  store(type_of(k), element(values, type_of(k), i), value, random ? Rounding::stochastic : Rounding::nearest,
        random ? random16(s.key, s.first + i) : 0);
  if (k == WeightStorage::f32_copy) store(DType::bf16, element(s.writes[0], DType::bf16, i), value);
  if (k == WeightStorage::bf16_kahan) {
    const float kept = value_at(DType::bf16, values, i);
    store(DType::bf16, element(s.writes[1], DType::bf16, i), std::isfinite(kept) ? value - kept : 0);
  }
}

void put_state(DType d, const KernelArguments& s, std::size_t written, int state, std::size_t i, float value) {
  const bool random = d == DType::bf16;
  store(d, element(s.writes[written], d, i), canonical(value), random ? Rounding::stochastic : Rounding::nearest,
        random ? random16(static_cast<const StateRandomKeys*>(s.settings)->keys[state], s.first + i) : 0);
}

void check_at_least_zero(std::string_view kernel, std::string_view what, double value) {
  if (!(value >= 0) || !std::isfinite(static_cast<float>(value)))
    text::refuse("{}: {} is {}; expected a finite number >= 0", kernel, what, value);
}

void check_beta(std::string_view kernel, std::string_view what, double value) {
  if (!(value >= 0 && value < 1)) text::refuse("{}: {} is {}; expected 0 <= {} < 1", kernel, what, value, what);
}

void check_scale(std::string_view kernel, const Gradient& g) {
  if (!std::isfinite(static_cast<float>(g.scale)))
    text::refuse("{}: the gradient's scale is {}; expected a finite f32", kernel, g.scale);
}

void check_settled(std::string_view kernel, std::string_view what, float value) {
  if (!std::isfinite(value)) text::refuse("{}: {} does not fit an f32", kernel, what);
}

std::size_t narrow_index(std::string_view kernel, std::string_view what, DType d) {
  for (std::size_t i = 0; i < std::size(narrow_types); ++i)
    if (narrow_types[i] == d) return i;
  const auto number = static_cast<std::size_t>(d);
  text::refuse("{}: {} can't be {}; expected f32 or bf16", kernel, what,
               number < dtype_count ? name(d) : fmt::to_string(number));
}

std::size_t keep_index(std::string_view kernel, WeightStorage k) {
  const auto number = static_cast<std::size_t>(k);
  if (number >= keep_count) text::refuse("{}: no way to keep parameters has number {}", kernel, number);
  return number;
}

void run_update(const UpdateCall& u) {
  check_threads(u.optimizer, u.threads);
  check_random(u.optimizer, u.random, u.n);
  std::array<KernelOperand, most_written> written;
  std::array<void*, most_written> writes;
  std::size_t count = 0;
  const auto add = [&](std::string_view what, void* data, DType type) {
    written[count] = {what, data, bytes_of(u.optimizer, u.n, size_of(type))};
    writes[count++] = data;
  };
  const WeightStorage keep = u.weights.keep;
  if (keep == WeightStorage::f32_copy) add("the bf16 copy", u.weights.copy, DType::bf16);
  add("the parameters", u.weights.values, type_of(keep));
  if (keep == WeightStorage::bf16_kahan) add("the parameters' rest", u.weights.rest, DType::bf16);
  for (const StateOperand& state : u.states) add(state.name, state.data, state.type);
  const KernelOperand gradient{"the gradient", u.gradient.values, bytes_of(u.optimizer, u.n, size_of(u.gradient.type))};
  check_operands(u.optimizer, {written.data(), count}, {&gradient, 1}, false);
  run(u.kernel,
      {.n = u.n,
       .writes = writes.data(),
       .reads = &u.gradient.values,
       .sources = 1,
       .first = u.random.first,
       .key = random_key(u.random),
       .settings = u.settings},
      u.threads);
}

}  // namespace trellis::kernels
