// Kinds activation and its variants: func(data scale + bias) on the Scalar engine, also with the sum of each row.
#include "sim/core/arithmetic/activation_functions.h"
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

// Inputs: data, then bias and scale unless they are attributes. If absent they are 0 and 1.
struct Columns {
  const View* bias = nullptr;
  const View* scale = nullptr;

  explicit Columns(const BoundInstruction& call) {
    std::size_t next = 1;
    if (!call.has(Key::bias) && next < call.inputs.size()) bias = &call.in(next++);
    if (!call.has(Key::scale) && next < call.inputs.size()) scale = &call.in(next++);
    used = next;
  }
  std::size_t used = 0;
};

void check(const BoundInstruction& call) {
  const Columns columns(call);
  if (columns.used != call.inputs.size()) refuse(call, "bias or scale is given both as an attribute and as a column");
  if (columns.bias != nullptr) expect_column(call, "bias", *columns.bias);
  if (columns.scale != nullptr) expect_column(call, "scale", *columns.scale);
  if (columns.scale != nullptr && columns.scale->type != DType::f32)
    refuse(call, "scale is {}; expected f32", name(columns.scale->type));
  const auto func = static_cast<ActivationFunction>(call.number(Key::func));
  if (func == ActivationFunction::prelu && !call.has(Key::value)) refuse(call, "prelu needs value, its slope below 0");
  if (call.outputs.size() == 2) {
    expect_rows(call, "data", call.in(), call.out().rows);
    expect_elements(call, "data", call.in(), call.out().elements());
    expect_column(call, "sums", call.out(1));
    expect_reduction(call, Key::op);
  }
}

double cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  return row_cycles(call, row, chip, call.in().elements(),
                    is_16bit(call.in().type) && is_16bit(call.out().type) ? 1 : 0);
}

void run(const BoundInstruction& call, CoreMemory& memory) {
  const Columns columns(call);
  InputRows data(memory, call.in());
  ScalarOperand scale(memory, columns.scale, call.number(Key::scale, 1));
  ScalarOperand bias(memory, columns.bias, call.number(Key::bias, 0));
  OutputRows out(call, memory, call.out());
  const auto func = static_cast<ActivationFunction>(call.number(Key::func));
  const auto slope = static_cast<float>(call.number(Key::value, func == ActivationFunction::lrelu ? 0.01 : 0));
  const bool reduces = call.outputs.size() == 2;
  const AluOp op = reduction_of(call, Key::op, AluOp::add);
  const std::size_t n = out.elements();
  std::vector<float> affine(n);
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    const float* __restrict x = data.row(r);
    float* __restrict t = affine.data();
    const float s = scale.at(r), b = bias.at(r);
    for (std::size_t i = 0; i < n; ++i) t[i] = x[i] * s + b;
    evaluate(func, t, out.row(), n, slope);
    if (reduces) {
      const float sum = reduced(op, out.row(), n, memory.sum_order());
      memory.write(call.out(1), r, &sum);
    }
    out.store(r);
  }
}

const RegisteredInstruction activation(
    {.name = "activation",
     .summary = "out = func(data scale + bias); bias and scale are numbers or columns",
     .engines = {Engine::scalar},
     .outputs = {{"out"}},
     .inputs = {{"data"}, {"bias", true}, {"scale", true}},
     .keys = with_rounding({{Key::func, true}, {Key::scale}, {Key::bias}, {Key::value}}),
     .shape = ShapeRule::elementwise,
     .check = check,
     .cycles = cycles,
     .run = run});

const RegisteredInstruction activation_reduce(
    {.name = "activation_reduce",
     .summary = "as activation, and sums = the reduction (op, add where absent) of each row of the results",
     .engines = {Engine::scalar},
     .outputs = {{"out"}, {"sums"}},
     .inputs = {{"data"}, {"bias", true}, {"scale", true}},
     .keys = with_rounding({{Key::func, true}, {Key::op}, {Key::scale}, {Key::bias}, {Key::value}}),
     .check = check,
     .cycles = cycles,
     .run = run});

}  // namespace
}  // namespace trellis::sim::core
