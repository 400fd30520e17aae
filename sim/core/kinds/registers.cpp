// Kinds that move numbers between registers and memory.
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/run/core_memory.h"

namespace trellis::sim::core {
namespace {

void check_number(const BoundInstruction& call, std::string_view operand, const View& v) {
  expect_rows(call, operand, v, 1);
  expect_elements(call, operand, v, 1);
  if (kernels::size_of(v.type) > 4) refuse(call, "{} is {}; expected at most 32 bits", operand, name(v.type));
}

void check_load(const BoundInstruction& call) { check_number(call, "source", call.in()); }
void check_store(const BoundInstruction& call) { check_number(call, "out", call.out()); }

void load(const BoundInstruction& call, CoreMemory& memory) {
  double number = 0;
  memory.read(call.in(), 0, &number);
  memory.reg(static_cast<std::size_t>(call.number(Key::target))) = register_number(number);
}

void store(const BoundInstruction& call, CoreMemory& memory) {
  const auto number = static_cast<double>(memory.reg(static_cast<std::size_t>(call.number(Key::source))));
  memory.write(call.out(), 0, &number);
}

const std::vector<Engine> every_engine = {Engine::tensor, Engine::vector, Engine::scalar, Engine::gpsimd, Engine::sync};

const RegisteredInstruction kinds_of_registers[] = {
    RegisteredInstruction(
        {.name = "register_load",
         .summary = "register to = the one number of source; value: what it is taken for in time alone",
         .engines = every_engine,
         .inputs = {{"source", false, in_sbuf | in_hbm}},
         .keys = {{Key::target, true}, {Key::value}},
         .control = ControlFlow::load,
         .check = check_load,
         .run = load}),
    RegisteredInstruction({.name = "register_store",
                           .summary = "out = register from",
                           .engines = every_engine,
                           .outputs = {{"out", false, in_sbuf | in_hbm}},
                           .keys = {{Key::source, true}},
                           .check = check_store,
                           .run = store}),
};

}  // namespace
}  // namespace trellis::sim::core
