// Kinds for mean and variance by parts, as batch and layer norms use them.
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

constexpr std::int64_t most_elements = 512;

void check_stats(const BoundInstruction& call) {
  if (call.in().elements() > most_elements)
    refuse(call, "data has {} elements a row; expected at most {}", call.in().elements(), most_elements);
  expect_rows(call, "out", call.out(), call.in().rows);
  expect_elements(call, "out", call.out(), 6);
}

double stats_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  return row_cycles(call, row, chip, call.in().elements());
}

// Statistics of every second element: count, mean, and the sum of squared deviations.
void half(const float* from, std::size_t n, std::size_t first, float* out) {
  float sum = 0, squares = 0;
  std::size_t count = 0;
  for (std::size_t i = first; i < n; i += 2, ++count) sum += from[i];
  const float mean = count == 0 ? 0 : sum / static_cast<float>(count);
  for (std::size_t i = first; i < n; i += 2) squares += (from[i] - mean) * (from[i] - mean);
  out[0] = static_cast<float>(count);
  out[1] = mean;
  out[2] = squares;
}

void stats(const BoundInstruction& call, CoreMemory& memory) {
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    const float* from = in.row(r);
    half(from, in.elements(), 0, out.row());
    half(from, in.elements(), 1, out.row() + 3);
    out.store(r);
  }
}

const RegisteredInstruction bn_stats(
    {.name = "bn_stats",
     .summary = "out = count, mean, count variance of the even elements, then of the odd ones",
     .engines = {Engine::vector},
     .outputs = {{"out"}},
     .inputs = {{"data"}},
     .keys = with_rounding(),
     .check = check_stats,
     .cycles = stats_cycles,
     .run = stats});

void check_aggr(const BoundInstruction& call) {
  if (call.in().elements() % 3 != 0)
    refuse(call, "data has {} elements a row; expected a multiple of 3", call.in().elements());
  expect_rows(call, "out", call.out(), call.in().rows);
  expect_elements(call, "out", call.out(), 2);
}

// Combines the parts from left to right (Chan and others, 1979).
void aggr(const BoundInstruction& call, CoreMemory& memory) {
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    const float* part = in.row(r);
    float count = 0, mean = 0, squares = 0;
    for (std::size_t i = 0; i + 2 < in.elements(); i += 3) {
      if (part[i] == 0) continue;
      const float all = count + part[i], apart = part[i + 1] - mean;
      mean += apart * (part[i] / all);
      squares += part[i + 2] + (apart * apart) * (count * (part[i] / all));
      count = all;
    }
    out.row()[0] = mean;
    out.row()[1] = count == 0 ? 0 : squares / count;
    out.store(r);
  }
}

const RegisteredInstruction bn_aggr({.name = "bn_aggr",
                                     .summary = "out = mean and variance of what several bn_stats say",
                                     .engines = {Engine::vector},
                                     .outputs = {{"out"}},
                                     .inputs = {{"data"}},
                                     .keys = with_rounding(),
                                     .check = check_aggr,
                                     .cycles = stats_cycles,
                                     .run = aggr});

}  // namespace
}  // namespace trellis::sim::core
