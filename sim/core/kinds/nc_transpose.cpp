// Kind nc_transpose: out[F x P] = in[P x F], bit for bit; 128 x 128 by Tensor into PSUM, 32 x 32 by Vector.
#include <algorithm>

#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

void check(const BoundInstruction& call) {
  const View &in = call.in(), &out = call.out();
  const bool tensor = call.instruction.engine == Engine::tensor;
  const std::int64_t most = tensor ? 128 : 32;
  if (in.rows > most || in.elements() > most)
    refuse(call, "data is {} x {}; {} transposes at most {} x {}", in.rows, in.elements(),
           name(call.instruction.engine), most, most);
  if (tensor && call.space(in) != MemorySpace::sbuf)
    refuse(call, "data lies in PSUM; the Tensor engine reads SBUF alone");
  if (tensor && call.space(out) != MemorySpace::psum)
    refuse(call, "out lies in SBUF; the Tensor engine writes PSUM alone");
  if (in.type != out.type)
    refuse(call, "data is {} and out {}; a transpose keeps the type", name(in.type), name(out.type));
  expect_rows(call, "out", out, in.elements());
  expect_elements(call, "out", out, in.rows);
}

double cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  const View& in = call.in();
  if (call.instruction.engine != Engine::tensor) return row_cycles(call, row, chip, in.elements());
  const auto rows = std::max<std::int64_t>(in.rows, std::min<std::int64_t>(64, in.elements()));
  const bool wide = kernels::size_of(in.type) > 2;
  return static_cast<double>(rows) * (wide ? chip.tensor.transpose_f32 : chip.tensor.row_cycles_wide) +
         chip.tensor.load_exposed;
}

const RegisteredInstruction nc_transpose(
    {.name = "nc_transpose",
     .summary = "partitions and elements change places",
     .engines = {Engine::tensor, Engine::vector},
     .outputs = {{"out"}},
     .inputs = {{"data"}},
     .check = check,
     .cycles = cycles,
     .run = transpose_rows,
     .cost = "Tensor: tensor.row.16bit, tensor.row.transpose.f32, tensor.load.exposed"});

}  // namespace
}  // namespace trellis::sim::core
