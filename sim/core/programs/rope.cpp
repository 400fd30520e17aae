#include "kernels/layers/rotary.h"

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"
#include "text/refuse.h"

// Rotary embedding of heads x positions x size. The halves of a head's elements are the pairs: the first half times
// cosine minus the second times sine, and the second times cosine plus the first times sine. A partition holds `run`
// consecutive positions. The tables are loaded once, or for every tile as a kernel over single heads does.
namespace trellis::sim::core {
namespace {

struct Sizes {
  std::int64_t heads, positions, size, run;
  bool kept;

  std::int64_t half() const { return size / 2; }
  std::int64_t tile() const { return 128 * run; }  // positions
};

Sizes sizes_of(const Arguments& a) {
  const Sizes s{a.count("heads"), a.count("positions"), a.count("size"), a.count("run"), a.word("tables") == "kept"};
  if (s.size % 2 != 0 || s.positions % s.tile() != 0)
    text::refuse(
        "rope: size={} positions={} run={}; expected an even size and positions in "
        "multiples of 128 run",
        s.size, s.positions, s.run);
  if (s.positions > most_in_dim / s.size || s.heads > most_in_dim / (s.positions * s.size))
    text::refuse("rope: heads={} positions={} size={}; expected at most {} elements", s.heads, s.positions, s.size,
                 most_in_dim);
  return s;
}

// `run` positions in each partition, from `first` on.
TensorOperand rows_of(const TensorOperand& table, std::int64_t first, const Sizes& s, std::int64_t elements) {
  return part_of(table, {first * elements, 128, s.run * elements});
}

// One half of every position in a tile of x.
TensorOperand half_of(const TensorOperand& tile, const Sizes& s, std::int64_t which) {
  TensorOperand part = tile;
  const std::int64_t size = static_cast<std::int64_t>(kernels::size_of(tile.view.type));
  part.view.offset += which * s.half() * size;
  part.view.dims = 2;
  part.view.dim[0] = {static_cast<std::int32_t>(s.run), static_cast<std::int32_t>(s.size)};
  part.view.dim[1] = {static_cast<std::int32_t>(s.half()), 1};
  return part;
}

struct Tiles {
  TensorOperand x, y, cosines, sines, left, right;
};

void turn(ProgramBuilder& b, const Sizes& s, const Tiles& t) {
  const TensorOperand a = half_of(t.x, s, 0), c = half_of(t.x, s, 1);
  const auto table = [&](const TensorOperand& o) { return o.shaped({s.run, s.half()}); };
  const TensorOperand cosines = table(t.cosines), sines = table(t.sines), left = table(t.left), right = table(t.right);
  const TensorOperand first = half_of(t.y, s, 0), second = half_of(t.y, s, 1);
  tensor_tensor(b, left, c, AluOp::multiply, sines);
  tensor_tensor(b, right, a, AluOp::multiply, sines);
  tensor_tensor(b, first, a, AluOp::multiply, cosines);
  tensor_tensor(b, second, c, AluOp::multiply, cosines);
  tensor_tensor(b, first, first, AluOp::subtract, left);
  tensor_tensor(b, second, second, AluOp::add, right);
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("rope", chip);
  const Sizes s = sizes_of(a);
  const TensorOperand x = b.input("x", DType::f32, 1, s.heads * s.positions * s.size),
                      y = b.output("y", DType::f32, 1, s.heads * s.positions * s.size),
                      cosines = b.input("cosines", DType::f32, 1, s.positions * s.half()),
                      sines = b.input("sines", DType::f32, 1, s.positions * s.half());
  const std::int64_t tiles = s.positions / s.tile(), half = s.run * s.half();
  const int turns = s.run > 8 ? 2 : 4;
  RotatingTiles xs(b, "x_tile", DType::f32, 128, 2 * half, turns), ys(b, "y_tile", DType::f32, 128, 2 * half, turns);
  RotatingTiles lefts(b, "left", DType::f32, 128, half, 2), rights(b, "right", DType::f32, 128, half, 2);
  RotatingTiles cosine_tiles(b, "cosine_tile", DType::f32, 128, half, s.kept ? static_cast<int>(tiles) : turns);
  RotatingTiles sine_tiles(b, "sine_tile", DType::f32, 128, half, s.kept ? static_cast<int>(tiles) : turns);
  for (std::int64_t head = 0; head < s.heads; ++head)
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t position = tile * s.tile(), at = head * s.positions + position;
      const Tiles t{xs.next(), ys.next(), cosine_tiles.next(), sine_tiles.next(), lefts.next(), rights.next()};
      load(b, t.x, rows_of(x, at, s, s.size));
      if (!s.kept || head == 0) {
        load(b, t.cosines, rows_of(cosines, position, s, s.half()), Engine::scalar);
        load(b, t.sines, rows_of(sines, position, s, s.half()), Engine::scalar);
      }
      turn(b, s, t);
      store(b, rows_of(y, at, s, s.size), t.y);
    }
  return b.finish();
}

void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  const Sizes s = sizes_of(a);
  fill_normal(memory, "x", DType::f32, seed);
  kernels::rotary_table(memory.hbm_as<float>("cosines").data(), memory.hbm_as<float>("sines").data(), 0,
                        static_cast<std::size_t>(s.positions), static_cast<std::size_t>(s.size));
}

std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const Sizes s = sizes_of(a);
  const auto positions = static_cast<std::size_t>(s.positions), size = static_cast<std::size_t>(s.size);
  const std::span<const float> x = memory.hbm_as<float>("x");
  std::vector<float> truth(x.size());
  for (std::size_t head = 0; head < static_cast<std::size_t>(s.heads); ++head) {
    const std::size_t at = head * positions * size;
    kernels::rotary(DType::f32, &x[at], &truth[at], {positions, 1, size, size, size},
                    {memory.hbm_as<float>("cosines").data(), memory.hbm_as<float>("sines").data(), positions});
  }
  return {compare_bits("y", DType::f32, memory.hbm("y").data(), truth.data(), truth.size())};
}

const RegisteredProgram registered({.name = "rope",
                                    .summary = "rotary position embedding in f32",
                                    .parameters = {{"heads", "how many", 64, {}},
                                                   {"positions", "of each head", 4096, {}},
                                                   {"size", "elements of a head at a position", 128, {}},
                                                   {"run", "positions of a partition in a tile", 8, {}},
                                                   {"tables", "of cosines and sines", 0, {"kept", "reloaded"}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
