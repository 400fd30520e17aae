#include "kernels/reduce/cast.h"

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"

// Casts f32 to bf16 on Vector, to nearest or stochastically with the random bits of kernels/types/random.h.
namespace trellis::sim::core {
namespace {

constexpr std::int64_t columns = 4096;
constexpr kernels::Random random = {.seed = 7, .step = 3, .tensor = 1};

std::vector<Attribute> rounding_of(const Arguments& a, const RowTile& p) {
  if (a.word("rounding") == "nearest") return {};
  return {number(Key::rounding, static_cast<double>(kernels::Rounding::stochastic)),
          number(Key::seed, static_cast<double>(random.seed)), number(Key::step, static_cast<double>(random.step)),
          number(Key::tensor, static_cast<double>(random.tensor)), number(Key::first, static_cast<double>(p.first))};
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("cast", chip);
  const std::int64_t n = a.count("n");
  const TensorOperand x = b.input("x", DType::f32, 1, n), y = b.output("y", DType::bf16, 1, n);
  RotatingTiles wide(b, "wide", DType::f32, 128, columns, 3), narrow(b, "narrow", DType::bf16, 128, columns, 3);
  for (const RowTile& p : pieces_of(n, columns)) {
    const TensorOperand from = part_of_tile(wide.next(), p), to = part_of_tile(narrow.next(), p);
    load(b, from, part_of(x, p));
    b.add("tensor_copy", Engine::vector, {to}, {from}, rounding_of(a, p));
    store(b, part_of(y, p), to);
  }
  return b.finish();
}

void fill(const Arguments&, CoreMemory& memory, std::uint64_t seed) { fill_normal(memory, "x", DType::f32, seed); }

std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const auto n = static_cast<std::size_t>(a.count("n"));
  kernels::CastOptions options;
  if (a.word("rounding") == "stochastic") options = {.rounding = kernels::Rounding::stochastic, .random = random};
  std::vector<std::byte> truth(n * 2);
  kernels::cast(DType::f32, memory.hbm("x").data(), DType::bf16, truth.data(), n, options);
  return {compare_bits("y", DType::bf16, memory.hbm("y").data(), truth.data(), n)};
}

const RegisteredProgram registered({.name = "cast",
                                    .summary = "f32 to bf16, to nearest or stochastically",
                                    .parameters = {{"n", "elements", 1 << 22, {}},
                                                   {"rounding", "of each element", 0, {"nearest", "stochastic"}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
