// Kind halve: half of each number.
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

void run(const BoundInstruction& call, CoreMemory& memory) {
  const View &out = call.out(), &in = call.in();
  std::vector<double> row(static_cast<std::size_t>(out.elements()));
  for (std::int64_t r = 0; r < out.rows; ++r) {
    memory.read(in, r, row.data());
    for (double& x : row) x /= 2;
    memory.write(out, r, row.data());
  }
}

const RegisteredInstruction halve({.name = "halve",
                                   .summary = "out = in / 2",
                                   .engines = {Engine::vector},
                                   .outputs = {{"out"}},
                                   .inputs = {{"in"}},
                                   .run = run});

}  // namespace
}  // namespace trellis::sim::core
