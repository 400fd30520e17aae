#include "kernels/layers/rms_norm.h"

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/reference_comparison.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"

// y = x scale weight, with a row of x in a partition; or the same of x + residual, which is also stored.
namespace trellis::sim::core {
namespace {

constexpr float epsilon = 1e-5F;

struct Sizes {
  std::int64_t rows, columns;
  DType type;
  bool adds;
};

Sizes sizes_of(const Arguments& a) {
  return {a.count("rows"), a.count("columns"), a.type("type"), a.word("residual") == "yes"};
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("rms_norm", chip);
  const Sizes s = sizes_of(a);
  const auto table = [&](std::string_view name, BufferRole role) {
    return (role == BufferRole::input ? b.input(std::string(name), s.type, s.rows, s.columns)
                                      : b.output(std::string(name), s.type, s.rows, s.columns));
  };
  const TensorOperand x = table("x", BufferRole::input), y = table("y", BufferRole::output);
  const TensorOperand weight = b.input("weight", s.type, 1, s.columns);
  const TensorOperand residual = s.adds ? table("residual", BufferRole::input) : TensorOperand{};
  const TensorOperand sum = s.adds ? table("sum", BufferRole::output) : TensorOperand{};
  const TensorOperand weights = b.tile("weights", s.type, 128, s.columns);
  load(b, weights, weight.spread_rows(128));
  const std::int64_t bytes = s.columns * static_cast<std::int64_t>(kernels::size_of(s.type));
  const int turns = sets_that_fit(chip, (s.adds ? 3 : 2) * bytes, bytes + 1024, 3);
  RotatingTiles xs(b, "x_tile", s.type, 128, s.columns, turns), ys(b, "y_tile", s.type, 128, s.columns, turns);
  RotatingTiles residuals(b, "residual_tile", s.type, 128, s.adds ? s.columns : 1, turns);
  RotatingTiles squares(b, "squares", DType::f32, 128, 1, 4), scales(b, "scale", DType::f32, 128, 1, 4);
  each_block(s.rows, 128, [&](std::int64_t row, std::int64_t count) {
    TensorOperand xt = xs.next().row_range(0, count);
    const TensorOperand yt = ys.next().row_range(0, count);
    load(b, xt, x.row_range(row, count));
    if (s.adds) {
      const TensorOperand more = residuals.next().row_range(0, count);
      load(b, more, residual.row_range(row, count), Engine::scalar);
      tensor_tensor(b, xt, xt, AluOp::add, more);
      store(b, sum.row_range(row, count), xt);
    }
    const TensorOperand square = squares.next().row_range(0, count), scale = scales.next().row_range(0, count);
    b.add("activation_reduce", Engine::scalar, {yt, square}, {xt}, {func(ActivationFunction::square)});
    activation(b, scale, square, ActivationFunction::rsqrt, 1.0 / static_cast<double>(s.columns), epsilon);
    scalar_tensor_tensor(b, yt, xt, AluOp::multiply, scale, AluOp::multiply, weights.row_range(0, count));
    store(b, y.row_range(row, count), yt);
  });
  return b.finish();
}

void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  const Sizes s = sizes_of(a);
  for (const std::string_view name : {"x", "weight"}) fill_normal(memory, name, s.type, seed);
  if (s.adds) fill_normal(memory, "residual", s.type, seed);
}

// Compares with the host's result from the same inputs in f32. On both sides the sum of squares has columns / 32 + 6
// roundings, whose effect the root halves, and there are 8 more: each side is within so many roundings of the exact
// result.
std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const Sizes s = sizes_of(a);
  const auto rows = static_cast<std::size_t>(s.rows), columns = static_cast<std::size_t>(s.columns);
  std::vector<Comparison> all;
  std::vector<float> x = floats_of(memory, "x", s.type);
  if (s.adds) {
    const std::vector<float> residual = floats_of(memory, "residual", s.type);
    std::vector<std::byte> sums(x.size() * kernels::size_of(s.type));
    for (std::size_t i = 0; i < x.size(); ++i)
      kernels::store(s.type, sums.data() + i * kernels::size_of(s.type), x[i] + residual[i]);
    all.push_back(compare_bits("sum", s.type, memory.hbm("sum").data(), sums.data(), x.size()));
    x = floats_of(memory, "sum", s.type);
  }
  const std::vector<float> weight = floats_of(memory, "weight", s.type);
  std::vector<float> y(x.size());
  kernels::rms_norm(DType::f32, x.data(), weight.data(), y.data(), nullptr, rows, columns, {.epsilon = epsilon});
  const double relative = 2 * (0.5 * (static_cast<double>(columns) / 32 + 6) + 8) * unit_f32;
  std::vector<BoundedReference> truth;
  for (const float v : y) truth.push_back({v, relative * std::abs(v)});
  all.push_back(compare_bounded("y", s.type, memory.hbm("y").data(), truth));
  return all;
}

const RegisteredProgram registered({.name = "rms_norm",
                                    .summary = "RMSNorm of each row, after an addition if asked for",
                                    .parameters = {{"rows", "how many", 4096, {}},
                                                   {"columns", "elements of a row", 2048, {}},
                                                   {"type", "of all", 0, {"bf16", "f32"}},
                                                   {"residual", "added first, the sum kept", 0, {"no", "yes"}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
