// Kind iota: patterns of numbers.
#include "sim/core/arithmetic/affine_pattern.h"
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

void run(const BoundInstruction& call, CoreMemory& memory) {
  const View& out = call.out();
  const AffinePattern pattern(call, out);
  std::vector<std::int64_t> values(static_cast<std::size_t>(out.elements()));
  std::vector<double> row(values.size());
  for (std::int64_t r = 0; r < out.rows; ++r) {
    pattern.row(r, values.data());
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<double>(values[i]);
    memory.write(out, r, row.data());
  }
}

const RegisteredInstruction iota(
    {.name = "iota",
     .summary = "out = start + row rows + element step (or by dimension: step, step1, ...)",
     .engines = {Engine::gpsimd},
     .outputs = {{"out"}},
     .keys = {{Key::start}, {Key::step}, {Key::step1}, {Key::step2}, {Key::step3}, {Key::rows}},
     .run = run});

}  // namespace
}  // namespace trellis::sim::core
