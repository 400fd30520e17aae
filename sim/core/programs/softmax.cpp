#include "kernels/layers/softmax.h"

#include <optional>

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/reference_comparison.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"
#include "text/refuse.h"

// Softmax of each row: Vector finds the largest, Scalar exponentiates and sums, Vector divides.
namespace trellis::sim::core {
namespace {

struct Sizes {
  std::int64_t rows, columns;
  DType type;
  double scale;
};

Sizes sizes_of(const Arguments& a) { return {a.count("rows"), a.count("columns"), a.type("type"), a.number("scale")}; }

// 128 rows whose powers are computed but not yet divided by their sums: Vector divides them after it has found the
// largest elements of the next 128 rows.
struct Block {
  TensorOperand tile, power, sum, y;
};

void divide(ProgramBuilder& b, const Block& block) {
  b.add("reciprocal", Engine::vector, {block.sum}, {block.sum});
  tensor_scalar(b, block.tile, block.power, AluOp::multiply, block.sum);
  store(b, block.y, block.tile);
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("softmax", chip);
  const Sizes s = sizes_of(a);
  const TensorOperand x = b.input("x", s.type, s.rows, s.columns), y = b.output("y", s.type, s.rows, s.columns);
  const std::int64_t bytes = s.columns * static_cast<std::int64_t>(kernels::size_of(s.type));
  const int turns = sets_that_fit(chip, 2 * bytes + 4 * s.columns, 2048, 3);
  if (turns < 2) text::refuse("softmax: columns={} do not fit on chip twice", s.columns);
  RotatingTiles xs(b, "x_tile", s.type, 128, s.columns, turns), ys(b, "y_tile", s.type, 128, s.columns, turns);
  RotatingTiles powers(b, "power", DType::f32, 128, s.columns, turns);
  RotatingTiles mosts(b, "most", DType::f32, 128, 1, 4), sums(b, "sum", DType::f32, 128, 1, 4);
  std::optional<Block> before;
  each_block(s.rows, 128, [&](std::int64_t row, std::int64_t count) {
    const auto next = [&](RotatingTiles& r) { return r.next().row_range(0, count); };
    const TensorOperand xt = next(xs), most = next(mosts);
    const Block now{next(ys), next(powers), next(sums), y.row_range(row, count)};
    load(b, xt, x.row_range(row, count));
    reduce(b, most, xt, s.scale < 0 ? AluOp::min : AluOp::max);
    tensor_scalar(b, most, most, AluOp::multiply, -s.scale, Engine::gpsimd);
    b.add("activation_reduce", Engine::scalar, {now.power, now.sum}, {xt, most},
          {func(ActivationFunction::exp), number(Key::scale, s.scale)});
    if (before) divide(b, *before);
    before = now;
  });
  divide(b, *before);
  return b.finish();
}

void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  fill_normal(memory, "x", sizes_of(a).type, seed, 3);
}

// Compares with the host's result from the same inputs in f32. A power is off by the rounding of t, of the largest t
// and of their difference in its exponent, and by 2 units of its own; the sum by its columns / 32 + 6 additions. The
// bound is twice this, as both sides are rounded.
std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const Sizes s = sizes_of(a);
  const auto rows = static_cast<std::size_t>(s.rows), columns = static_cast<std::size_t>(s.columns);
  const std::vector<float> x = floats_of(memory, "x", s.type);
  std::vector<float> y(x.size());
  kernels::softmax(DType::f32, x.data(), y.data(), rows, columns, {.scale = static_cast<float>(s.scale)});
  double largest = 0;
  for (const float v : x) largest = std::max(largest, std::abs(s.scale * v));
  const double power = 4 * largest + 4, relative = 2 * (2 * power + static_cast<double>(columns) / 32 + 10) * unit_f32;
  std::vector<BoundedReference> truth;
  for (const float v : y) truth.push_back({v, relative * v});
  return {compare_bounded("y", s.type, memory.hbm("y").data(), truth)};
}

const RegisteredProgram registered({.name = "softmax",
                                    .summary = "softmax of each row",
                                    .parameters = {{"rows", "how many", 4096, {}},
                                                   {"columns", "elements of a row", 2048, {}},
                                                   {"type", "of all", 0, {"bf16", "f32"}},
                                                   {"scale", "of the exponents", 1, {}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
