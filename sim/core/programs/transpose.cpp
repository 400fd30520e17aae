#include <cstring>

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"

// y = x transposed, by the Tensor engine in blocks of 128 x 128, by the DMA engines, or by Vector in blocks of 32 x 32.
namespace trellis::sim::core {
namespace {

constexpr std::int64_t group = 512;  // rows of x that become one contiguous part of a row of y
constexpr std::int64_t chunk = 1024;

struct Sizes {
  std::int64_t rows, columns;
  DType type;
};

Sizes sizes_of(const Arguments& a) { return {a.count("rows"), a.count("columns"), a.type("type")}; }

struct Tables {
  TensorOperand x, y;
};

// Loads up to 512 rows of x, of which it takes `columns` columns, into tiles of 128 rows.
std::vector<TensorOperand> load_rows(ProgramBuilder& b, RotatingTiles& tiles, const TensorOperand& x, std::int64_t row,
                                     std::int64_t rows, std::int64_t column, std::int64_t columns) {
  std::vector<TensorOperand> loaded;
  each_block(rows, 128, [&](std::int64_t first, std::int64_t count) {
    loaded.push_back(block_of(tiles.next(), 0, count, 0, columns));
    load(b, loaded.back(), block_of(x, row + first, count, column, columns));
  });
  return loaded;
}

void by_tensor(ProgramBuilder& b, const Sizes& s, const Tables& t) {
  RotatingTiles tiles(b, "x_tile", s.type, 128, chunk, 8), results(b, "y_tile", s.type, 128, group, 4);
  RotatingTiles turned(b, "turned", s.type, 128, group, 4, MemorySpace::psum);
  int turn = 0;
  each_block(s.rows, group, [&](std::int64_t row, std::int64_t rows) {
    each_block(s.columns, chunk, [&](std::int64_t column, std::int64_t columns) {
      const std::vector<TensorOperand> loaded = load_rows(b, tiles, t.x, row, rows, column, columns);
      each_block(columns, 128, [&](std::int64_t first, std::int64_t count) {
        const TensorOperand bank = block_of(turned.next(), 0, count, 0, rows);
        for (std::size_t r = 0; r < loaded.size(); ++r)
          transpose(b, bank.column_range(static_cast<std::int64_t>(r) * 128, loaded[r].rows()),
                    loaded[r].column_range(first, count));
        const TensorOperand result = block_of(results.next(), 0, count, 0, rows);
        copy(b, result, bank, turn++ % 2 == 0 ? Engine::vector : Engine::scalar);
        store(b, block_of(t.y, column + first, count, row, rows), result);
      });
    });
  });
}

void by_vector(ProgramBuilder& b, const Sizes& s, const Tables& t) {
  RotatingTiles tiles(b, "x_tile", s.type, 128, chunk, 8), results(b, "y_tile", s.type, 128, group, 4);
  each_block(s.rows, group, [&](std::int64_t row, std::int64_t rows) {
    each_block(s.columns, chunk, [&](std::int64_t column, std::int64_t columns) {
      const std::vector<TensorOperand> loaded = load_rows(b, tiles, t.x, row, rows, column, columns);
      each_block(columns, 128, [&](std::int64_t first, std::int64_t count) {
        const TensorOperand result = block_of(results.next(), 0, count, 0, rows);
        each_block(rows, 32, [&](std::int64_t r, std::int64_t height) {
          each_block(count, 32, [&](std::int64_t c, std::int64_t width) {
            transpose(b, block_of(result, c, width, r, height),
                      block_of(loaded[static_cast<std::size_t>(r / 128)], r % 128, height, first + c, width),
                      Engine::vector);
          });
        });
        store(b, block_of(t.y, column + first, count, row, rows), result);
      });
    });
  });
}

void by_dma(ProgramBuilder& b, const Sizes& s, const Tables& t) {
  RotatingTiles tiles(b, "turned", s.type, 128, group, 8);
  each_block(s.rows, group, [&](std::int64_t row, std::int64_t rows) {
    each_block(s.columns, 128, [&](std::int64_t column, std::int64_t columns) {
      const TensorOperand tile = block_of(tiles.next(), 0, columns, 0, rows);
      b.add("dma_transpose", Engine::sync, {tile}, {block_of(t.x, row, rows, column, columns)});
      store(b, block_of(t.y, column, columns, row, rows), tile);
    });
  });
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("transpose", chip);
  const Sizes s = sizes_of(a);
  const Tables t{b.input("x", s.type, s.rows, s.columns), b.output("y", s.type, s.columns, s.rows)};
  const std::string& by = a.word("by");
  (by == "tensor" ? by_tensor : by == "vector" ? by_vector : by_dma)(b, s, t);
  return b.finish();
}

void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  fill_normal(memory, "x", sizes_of(a).type, seed);
}

std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const Sizes s = sizes_of(a);
  const auto rows = static_cast<std::size_t>(s.rows), columns = static_cast<std::size_t>(s.columns),
             size = kernels::size_of(s.type);
  const std::span<const std::byte> x = memory.hbm("x");
  std::vector<std::byte> truth(x.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      std::memcpy(&truth[(c * rows + r) * size], &x[(r * columns + c) * size], size);
  return {compare_bits("y", s.type, memory.hbm("y").data(), truth.data(), rows * columns)};
}

const RegisteredProgram registered({.name = "transpose",
                                    .summary = "rows and columns of a matrix change places",
                                    .parameters = {{"rows", "of x", 4096, {}},
                                                   {"columns", "of x", 4096, {}},
                                                   {"type", "of both", 0, {"bf16", "f32"}},
                                                   {"by", "who transposes", 0, {"tensor", "dma", "vector"}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
