#include "kernels/layers/layer_norm.h"

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/reference_comparison.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"

// LayerNorm by the stages of the public tutorial. v1: mean, mean of squares, shift, scale, weight and bias are separate
// instructions. v2: bn_stats and bn_aggr, then shift and scale in one.
namespace trellis::sim::core {
namespace {

constexpr float epsilon = 1e-5F;
constexpr std::int64_t stats_most = 512;

struct Sizes {
  std::int64_t rows, columns;
  DType type;
};

Sizes sizes_of(const Arguments& a) { return {a.count("rows"), a.count("columns"), a.type("type")}; }

// The tiles of a block of rows: x, y, and columns of one number a row.
struct Tiles {
  TensorOperand x, y, work, mean, variance, stats, mean_variance;
};

void moments_v1(ProgramBuilder& b, const Sizes& s, const Tiles& t) {
  const double each = 1.0 / static_cast<double>(s.columns);
  reduce(b, t.mean, t.x, AluOp::add);
  activation(b, t.work, t.x, ActivationFunction::square);
  reduce(b, t.variance, t.work, AluOp::add);
  tensor_scalar(b, t.mean, t.mean, AluOp::multiply, each);
  const TensorOperand square = t.stats.column_range(0, 1);
  tensor_tensor(b, square, t.mean, AluOp::multiply, t.mean);
  b.add("scalar_tensor_tensor", Engine::vector, {t.variance}, {t.variance, square},
        {alu(AluOp::multiply), number(Key::value, each), alu(AluOp::subtract, Key::op1)});
  activation(b, t.variance, t.variance, ActivationFunction::rsqrt, 1, epsilon);
  tensor_scalar(b, t.work, t.x, AluOp::subtract, t.mean);
  tensor_scalar(b, t.work, t.work, AluOp::multiply, t.variance);
}

void moments_v2(ProgramBuilder& b, const Sizes& s, const Tiles& t) {
  std::int64_t parts = 0;
  each_block(s.columns, stats_most, [&](std::int64_t first, std::int64_t count) {
    b.add("bn_stats", Engine::vector, {t.stats.column_range(6 * parts++, 6)}, {t.x.column_range(first, count)});
  });
  b.add("bn_aggr", Engine::vector, {t.mean_variance}, {t.stats.column_range(0, 6 * parts)});
  activation(b, t.variance, t.mean_variance.column_range(1, 1), ActivationFunction::rsqrt, 1, epsilon);
  b.add("tensor_scalar", Engine::vector, {t.work}, {t.x, t.mean_variance.column_range(0, 1), t.variance},
        {alu(AluOp::subtract), alu(AluOp::multiply, Key::op1)});
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("layer_norm", chip);
  const Sizes s = sizes_of(a);
  const TensorOperand x = b.input("x", s.type, s.rows, s.columns), weight = b.input("weight", s.type, 1, s.columns),
                      bias = b.input("bias", s.type, 1, s.columns), y = b.output("y", s.type, s.rows, s.columns);
  const TensorOperand weights = b.tile("weights", s.type, 128, s.columns),
                      biases = b.tile("biases", s.type, 128, s.columns);
  load(b, weights, weight.spread_rows(128));
  load(b, biases, bias.spread_rows(128));
  const std::int64_t bytes = s.columns * static_cast<std::int64_t>(kernels::size_of(s.type));
  const std::int64_t parts = (s.columns + stats_most - 1) / stats_most;
  const int turns = sets_that_fit(chip, 2 * bytes + 4 * s.columns, 2 * bytes + 2048, 3);
  const int inputs = sets_that_fit(chip, bytes, 2 * bytes + 2048 + turns * (bytes + 4 * s.columns), turns + 1);
  RotatingTiles xs(b, "x_tile", s.type, 128, s.columns, inputs), ys(b, "y_tile", s.type, 128, s.columns, turns);
  RotatingTiles works(b, "work", DType::f32, 128, s.columns, turns);
  const auto narrow = [&](std::string_view name, std::int64_t columns) {
    return RotatingTiles(b, name, DType::f32, 128, columns, turns);
  };
  RotatingTiles means = narrow("mean", 1), variances = narrow("variance", 1), stats = narrow("stats", 6 * parts),
                pairs = narrow("mean_variance", 2);
  const auto moments = a.word("stage") == "v1" ? moments_v1 : moments_v2;
  each_block(s.rows, 128, [&](std::int64_t row, std::int64_t count) {
    const auto next = [&](RotatingTiles& r) { return r.next().row_range(0, count); };
    const Tiles t{next(xs), next(ys), next(works), next(means), next(variances), next(stats), next(pairs)};
    load(b, t.x, x.row_range(row, count));
    moments(b, s, t);
    tensor_tensor(b, t.work, t.work, AluOp::multiply, weights.row_range(0, count));
    tensor_tensor(b, t.y, t.work, AluOp::add, biases.row_range(0, count));
    store(b, y.row_range(row, count), t.y);
  });
  return b.finish();
}

void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  for (const std::string_view name : {"x", "weight", "bias"}) fill_normal(memory, name, sizes_of(a).type, seed);
}

// Compares with the host's result from the same inputs in f32. A sum has at most `chain` roundings in sequence (v2 adds
// up to 256 elements in a row). The less exact of the two variances, E x^2 - mean^2, is off by chain (E x^2 + mean^2)
// units, and the root halves its relative error. The mean is off by chain E |x|. The host is within the same bounds.
std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const Sizes s = sizes_of(a);
  const auto rows = static_cast<std::size_t>(s.rows), columns = static_cast<std::size_t>(s.columns);
  const std::vector<float> x = floats_of(memory, "x", s.type), weight = floats_of(memory, "weight", s.type),
                           bias = floats_of(memory, "bias", s.type);
  std::vector<float> y(x.size()), means(rows), scales(rows);
  kernels::layer_norm(DType::f32, x.data(), weight.data(), bias.data(), y.data(), {means.data(), scales.data()}, rows,
                      columns, {.epsilon = epsilon});
  const double n = static_cast<double>(columns), chain = std::max(256.0, n / 32) + 16;
  std::vector<BoundedReference> truth;
  for (std::size_t r = 0; r < rows; ++r) {
    double squares = 0, sizes = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      squares += static_cast<double>(x[r * columns + c]) * x[r * columns + c] / n;
      sizes += std::abs(x[r * columns + c]) / n;
    }
    const double scale = scales[r], mean = means[r];
    const double variance_error = chain * (squares + mean * mean) * unit_f32 * scale * scale;
    for (std::size_t c = 0; c < columns; ++c) {
      const double part = std::abs(weight[c]) * scale,
                   error = part * (std::abs(x[r * columns + c] - mean) * (0.5 * variance_error + 6 * unit_f32) +
                                   chain * sizes * unit_f32);
      truth.push_back(
          {y[r * columns + c], 2 * (error + unit_f32 * (std::abs(bias[c]) + std::abs(y[r * columns + c])))});
    }
  }
  return {compare_bounded("y", s.type, memory.hbm("y").data(), truth)};
}

const RegisteredProgram registered({.name = "layer_norm",
                                    .summary = "LayerNorm of each row, by the stages of the public tutorial",
                                    .parameters = {{"rows", "how many", 4096, {}},
                                                   {"columns", "elements of a row", 2048, {}},
                                                   {"type", "of all", 1, {"bf16", "f32"}},
                                                   {"stage", "how mean and variance come", 1, {"v1", "v2"}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
