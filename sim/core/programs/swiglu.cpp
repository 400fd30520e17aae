#include "kernels/layers/activation.h"
#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"

// y = silu(gate) up, or silu(gate) alone: silu on Scalar, in f32, the product on Vector.
namespace trellis::sim::core {
namespace {

constexpr std::int64_t columns = 2048;

struct Sizes {
  std::int64_t n;
  DType type;
  bool multiplies;
};

Sizes sizes_of(const Arguments& a) { return {a.count("n"), a.type("type"), a.word("up") == "yes"}; }

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("swiglu", chip);
  const Sizes s = sizes_of(a);
  const TensorOperand gate = b.input("gate", s.type, 1, s.n), y = b.output("y", s.type, 1, s.n);
  const TensorOperand up = s.multiplies ? b.input("up", s.type, 1, s.n) : TensorOperand{};
  RotatingTiles gates(b, "gate_tile", s.type, 128, columns, 3), ups(b, "up_tile", s.type, 128, columns, 3),
      silus(b, "silu", DType::f32, 128, columns, 3), ys(b, "y_tile", s.type, 128, columns, 3);
  for (const RowTile& p : pieces_of(s.n, columns)) {
    const auto next = [&](RotatingTiles& r) { return part_of_tile(r.next(), p); };
    const TensorOperand gt = next(gates), yt = next(ys);
    load(b, gt, part_of(gate, p));
    if (s.multiplies) {
      const TensorOperand ut = next(ups), silu = next(silus);
      load(b, ut, part_of(up, p));
      activation(b, silu, gt, ActivationFunction::silu);
      tensor_tensor(b, yt, silu, AluOp::multiply, ut);
    } else {
      activation(b, yt, gt, ActivationFunction::silu);
    }
    store(b, part_of(y, p), yt);
  }
  return b.finish();
}

void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  const Sizes s = sizes_of(a);
  fill_normal(memory, "gate", s.type, seed, 3);
  if (s.multiplies) fill_normal(memory, "up", s.type, seed);
}

std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const Sizes s = sizes_of(a);
  const auto n = static_cast<std::size_t>(s.n);
  std::vector<std::byte> truth(n * kernels::size_of(s.type));
  const void* gate = memory.hbm("gate").data();
  if (s.multiplies)
    kernels::swiglu(s.type, gate, memory.hbm("up").data(), truth.data(), n);
  else
    kernels::activate(kernels::Activation::silu, s.type, gate, truth.data(), n);
  return {compare_bits("y", s.type, memory.hbm("y").data(), truth.data(), n)};
}

const RegisteredProgram registered({.name = "swiglu",
                                    .summary = "silu(gate) up, or silu(gate), element by element",
                                    .parameters = {{"n", "elements", 1 << 22, {}},
                                                   {"type", "of all", 0, {"bf16", "f32"}},
                                                   {"up", "whether there is a factor", 1, {"no", "yes"}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
