// Kinds for communication between the cores of a logical core, and between chips.
#include <array>
#include <vector>

#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/run/core_memory.h"

namespace trellis::sim::core {
namespace {

double in_cycles(const BoundInstruction& call, const ChipSpec& chip, double seconds) {
  return seconds * chip.engine[static_cast<std::size_t>(call.instruction.engine)].clock;
}

double barrier_cycles(const BoundInstruction& call, const CostRow&, const ChipSpec& chip) {
  return in_cycles(call, chip, in_seconds(chip.core_barrier));
}

const RegisteredInstruction core_barrier(
    {.name = "core_barrier",
     .summary = "signals that this core has come so far; the next instruction waits for the "
                "other core's signal",
     .engines = {Engine::tensor, Engine::vector, Engine::scalar, Engine::gpsimd, Engine::sync},
     .generation = 3,
     .cycles = barrier_cycles,
     .cost = "core.barrier"});

void check_exchange(const BoundInstruction& call) {
  const View &in = call.in(), &out = call.out();
  if (in.type != out.type) refuse(call, "source is {} and out {}; expected one type", name(in.type), name(out.type));
  expect_rows(call, "out", out, in.rows);
  expect_elements(call, "out", out, in.elements());
  if (call.buffer(in).core == call.buffer(out).core)
    refuse(call, "source and out both lie on core {}; expected two cores", call.buffer(in).core);
}

void check_short_exchange(const BoundInstruction& call) {
  check_exchange(call);
  const std::size_t size = kernels::size_of(call.in().type);
  const std::int64_t bytes = call.in().elements() * static_cast<std::int64_t>(size),
                     most = 256 * static_cast<std::int64_t>(size);
  if (bytes > most) refuse(call, "{} bytes a partition; expected at most {}", bytes, most);
}

double exchange_cycles(const BoundInstruction& call, const CostRow&, const ChipSpec& chip) {
  const double bytes = static_cast<double>(call.in().rows * call.in().elements()) *
                       static_cast<double>(kernels::size_of(call.in().type));
  return in_cycles(call, chip, in_seconds(chip.core_move) + bytes / chip.core_rate);
}

void exchange(const BoundInstruction& call, CoreMemory& memory) {
  const View &in = call.in(), &out = call.out();
  std::vector<std::byte> row(static_cast<std::size_t>(in.elements()) * kernels::size_of(in.type));
  for (std::int64_t r = 0; r < in.rows; ++r) {
    memory.read_bytes(in, r, row.data());
    memory.write_bytes(out, r, row.data());
  }
}

const RegisteredInstruction exchanges[] = {
    RegisteredInstruction({.name = "sendrecv",
                           .summary = "out, on the other core, = source; each core has one for what it sends",
                           .engines = {Engine::sync, Engine::scalar, Engine::gpsimd},
                           .outputs = {{"out", false, in_sbuf}},
                           .inputs = {{"source", false, in_sbuf}},
                           .generation = 3,
                           .dma = true,
                           .check = check_exchange,
                           .run = exchange}),
    RegisteredInstruction({.name = "sendrecv_gpsimd",
                           .summary = "the same by GpSimd's own DMA, up to 256 elements a partition",
                           .engines = {Engine::gpsimd},
                           .outputs = {{"out", false, in_sbuf}},
                           .inputs = {{"source", false, in_sbuf}},
                           .generation = 3,
                           .check = check_short_exchange,
                           .cycles = exchange_cycles,
                           .run = exchange,
                           .cost = "core.move.start, core.move.rate"}),
};

double collective_cycles(const BoundInstruction& call, const CostRow&, const ChipSpec& chip) {
  return in_cycles(call, chip, call.number(Key::duration) * 1e-9);
}

constexpr std::string_view sources[] = {"source0", "source1", "source2", "source3"};
constexpr std::string_view results[] = {"out0", "out1", "out2", "out3"};

// How long a collective takes depends on the network, which is not simulated here: `trellis sim` estimates it, and a
// core's program gets it as an attribute.
InstructionKind collective(std::string name, std::string summary, bool reduces) {
  InstructionKind kind{.name = std::move(name),
                       .summary = std::move(summary) + "; ns: how long it takes",
                       .engines = {Engine::gpsimd, Engine::sync},
                       .keys = {{Key::duration, true}},
                       .background = true,
                       .cycles = collective_cycles,
                       .cost = "ns, an attribute: trellis sim prices the collective",
                       .not_yet = "results: one core is run alone"};
  if (reduces) kind.keys.push_back({Key::op, true});
  for (std::size_t i = 0; i < std::size(sources); ++i) {
    kind.outputs.push_back({results[i], i != 0, in_sbuf | in_hbm});
    kind.inputs.push_back({sources[i], i != 0, in_sbuf | in_hbm});
  }
  return kind;
}

InstructionKind custom_op() {
  InstructionKind kind = collective("builtin_custom_op", "a program of GpSimd's own", false);
  kind.engines = {Engine::gpsimd};
  kind.background = false;
  kind.cost = "ns, an attribute";
  kind.not_yet = "results: its code is not ours";
  return kind;
}

const RegisteredInstruction custom(custom_op());

const RegisteredInstruction collectives[] = {
    RegisteredInstruction(collective("all_reduce", "out = all ranks' sources reduced", true)),
    RegisteredInstruction(collective("all_gather", "out = all ranks' sources, one after the other", false)),
    RegisteredInstruction(collective("all_gather_v", "the same of sources of different lengths", false)),
    RegisteredInstruction(collective("reduce_scatter", "out = this rank's part of all sources reduced", true)),
    RegisteredInstruction(collective("all_to_all", "out = this rank's part of each source", false)),
    RegisteredInstruction(collective("all_to_all_v", "the same of parts of different lengths", false)),
    RegisteredInstruction(collective("collective_permute", "out = another rank's source", false)),
    RegisteredInstruction(
        collective("collective_permute_implicit", "out = the source of the rank before in a ring", false)),
    RegisteredInstruction(
        collective("collective_permute_implicit_reduce", "the same, reduced with a second source", true)),
};

InstructionKind rank(std::string name, std::string summary) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .engines = {Engine::tensor, Engine::vector, Engine::scalar, Engine::gpsimd, Engine::sync},
          .keys = {{Key::target, true}, {Key::value, true}},
          .sequencer = true,
          .control = ControlFlow::move};
}

const RegisteredInstruction ranks[] = {
    RegisteredInstruction(rank("rank_id", "register to = value, this core's rank")),
    RegisteredInstruction(rank("collective_permute_implicit_current_processing_rank_id",
                               "register to = value, the rank whose data are at hand")),
};

}  // namespace
}  // namespace trellis::sim::core
