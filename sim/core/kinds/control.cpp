// Kinds that the engines' sequencers execute themselves: registers, loops, semaphores.
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/run/core_memory.h"

namespace trellis::sim::core {
namespace {

const std::vector<Engine> every_engine = {Engine::tensor, Engine::vector, Engine::scalar, Engine::gpsimd, Engine::sync};

void check_loop(const BoundInstruction& call) {
  if (call.number(Key::count) < 1) refuse(call, "count is {}; expected at least 1", call.number(Key::count));
}

const RegisteredInstruction kinds_of_control[] = {
    RegisteredInstruction({.name = "register_move",
                           .summary = "register to = value",
                           .engines = every_engine,
                           .keys = {{Key::target, true}, {Key::value, true}},
                           .sequencer = true,
                           .control = ControlFlow::move}),
    RegisteredInstruction({.name = "register_add",
                           .summary = "register to += value",
                           .engines = every_engine,
                           .keys = {{Key::target, true}, {Key::value, true}},
                           .sequencer = true,
                           .control = ControlFlow::add}),
    RegisteredInstruction({.name = "loop",
                           .summary = "up to its end_loop count times, register to = start, start + step, ...",
                           .engines = every_engine,
                           .keys = {{Key::target, true}, {Key::count, true}, {Key::start}, {Key::step}},
                           .sequencer = true,
                           .control = ControlFlow::loop,
                           .check = check_loop}),
    RegisteredInstruction({.name = "end_loop",
                           .summary = "the end of a loop",
                           .engines = every_engine,
                           .sequencer = true,
                           .control = ControlFlow::end_loop}),
    RegisteredInstruction({.name = "semaphore",
                           .summary = "waits or signals, and nothing else",
                           .engines = every_engine,
                           .sequencer = true}),
};

}  // namespace
}  // namespace trellis::sim::core
