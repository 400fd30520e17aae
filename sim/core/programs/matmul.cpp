#include <algorithm>
#include <stdexcept>

#include "kernels/layers/matmul.h"
#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"

// c = a^T b by the stages of the public matmul tutorial: each tile is loaded where it is used; the tiles of one factor
// are kept; blocks of both are kept; also blocks of the common dimension, with partial results summed in SBUF.
namespace trellis::sim::core {
namespace {

constexpr std::int64_t tile_k = 128, tile_m = 128, tile_n = 512;
constexpr int results_kept = 4;

struct Sizes {
  std::int64_t m, n, k;
  DType type;
};

Sizes sizes_of(const Arguments& a) {
  const Sizes s{a.count("M"), a.count("N"), a.count("K"), a.type("type")};
  if (s.m % tile_m != 0 || s.n % tile_n != 0 || s.k % tile_k != 0)
    throw std::invalid_argument("matmul: M and K must be multiples of 128, N of 512");
  return s;
}

struct Factors {
  TensorOperand a, b, c;
};

Factors declare(ProgramBuilder& b, const Sizes& s) {
  return {b.input("a", s.type, s.k, s.m), b.input("b", s.type, s.k, s.n), b.output("c", s.type, s.m, s.n)};
}

TensorOperand part(const TensorOperand& matrix, std::int64_t row, std::int64_t rows, std::int64_t column,
                   std::int64_t columns) {
  return matrix.row_range(row, rows).column_range(column, columns);
}

void put(ProgramBuilder& b, const TensorOperand& to, RotatingTiles& results, const TensorOperand& product) {
  const TensorOperand& tile = results.next();
  copy(b, tile, product);
  store(b, to, tile);
}

void tiled(ProgramBuilder& b, const Sizes& s) {
  const Factors f = declare(b, s);
  RotatingTiles as(b, "a_tile", s.type, tile_k, tile_m, 4), bs(b, "b_tile", s.type, tile_k, tile_n, 4);
  RotatingTiles results(b, "c_tile", s.type, tile_m, tile_n, 2);
  RotatingTiles products(b, "product", DType::f32, tile_m, tile_n, 2, MemorySpace::psum);
  for (std::int64_t m = 0; m < s.m; m += tile_m)
    for (std::int64_t n = 0; n < s.n; n += tile_n) {
      const TensorOperand& product = products.next();
      for (std::int64_t k = 0; k < s.k; k += tile_k) {
        const TensorOperand &at = as.next(), &bt = bs.next();
        load(b, at, part(f.a, k, tile_k, m, tile_m));
        load(b, bt, part(f.b, k, tile_k, n, tile_n));
        matmul(b, product, at, bt, k != 0);
      }
      put(b, part(f.c, m, tile_m, n, tile_n), results, product);
    }
}

void hoist_load(ProgramBuilder& b, const Sizes& s) {
  const Factors f = declare(b, s);
  RotatingTiles as(b, "a_tiles", s.type, tile_k, s.k / tile_k * tile_m, 2), bs(b, "b_tile", s.type, tile_k, tile_n, 8);
  RotatingTiles results(b, "c_tile", s.type, tile_m, tile_n, 2);
  RotatingTiles products(b, "product", DType::f32, tile_m, tile_n, 2, MemorySpace::psum);
  for (std::int64_t m = 0; m < s.m; m += tile_m) {
    const TensorOperand& kept = as.next();
    for (std::int64_t k = 0; k < s.k; k += tile_k)
      load(b, kept.column_range(k / tile_k * tile_m, tile_m), part(f.a, k, tile_k, m, tile_m));
    for (std::int64_t n = 0; n < s.n; n += tile_n) {
      const TensorOperand& product = products.next();
      for (std::int64_t k = 0; k < s.k; k += tile_k) {
        const TensorOperand& bt = bs.next();
        load(b, bt, part(f.b, k, tile_k, n, tile_n));
        matmul(b, product, kept.column_range(k / tile_k * tile_m, tile_m), bt, k != 0);
      }
      put(b, part(f.c, m, tile_m, n, tile_n), results, product);
    }
  }
}

// Blocks of two by two tiles: every loaded tile serves two products.
void block_free(ProgramBuilder& b, const Sizes& s) {
  const Factors f = declare(b, s);
  const std::int64_t bm = std::min<std::int64_t>(2 * tile_m, s.m), bn = std::min<std::int64_t>(2 * tile_n, s.n);
  RotatingTiles as(b, "a_block", s.type, tile_k, bm, 4), bs(b, "b_block", s.type, tile_k, bn, 4);
  RotatingTiles results(b, "c_tile", s.type, tile_m, tile_n, 4);
  RotatingTiles products(b, "product", DType::f32, tile_m, tile_n, 8, MemorySpace::psum);
  for (std::int64_t m = 0; m < s.m; m += bm)
    for (std::int64_t n = 0; n < s.n; n += bn) {
      const std::int64_t across = bn / tile_n, tiles = bm / tile_m * across;
      std::vector<TensorOperand> sums;
      for (std::int64_t t = 0; t < tiles; ++t) sums.push_back(products.next());
      for (std::int64_t k = 0; k < s.k; k += tile_k) {
        const TensorOperand &at = as.next(), &bt = bs.next();
        load(b, at, part(f.a, k, tile_k, m, bm));
        load(b, bt, part(f.b, k, tile_k, n, bn));
        for (std::int64_t t = 0; t < tiles; ++t)
          matmul(b, sums[static_cast<std::size_t>(t)], at.column_range(t / across * tile_m, tile_m),
                 bt.column_range(t % across * tile_n, tile_n), k != 0);
      }
      for (std::int64_t t = 0; t < tiles; ++t)
        put(b, part(f.c, m + t / across * tile_m, tile_m, n + t % across * tile_n, tile_n), results,
            sums[static_cast<std::size_t>(t)]);
    }
}

std::int64_t largest_divisor(std::int64_t of, std::int64_t unit, std::int64_t most) {
  std::int64_t tiles = most;
  while (of % (tiles * unit) != 0) --tiles;
  return tiles;
}

// How the products are cut: blocks of 16 x 2 tiles of c are summed over 8 tiles of the common dimension at a time, as
// in the tutorial, or fewer, so that they divide the sizes and fit in SBUF. If there is room for further tiles of the
// factors, the next block's are loaded ahead.
struct Blocks {
  std::int64_t ms, ns, ks;
  int turns;  // tiles of each factor kept in SBUF
};

Blocks blocks_for(const Sizes& s, const ChipSpec& chip) {
  Blocks n{largest_divisor(s.m, tile_m, 16), largest_divisor(s.n, tile_n, 2), largest_divisor(s.k, tile_k, 8), 0};
  const auto size = static_cast<std::int64_t>(kernels::size_of(s.type));
  for (;; n.ks = largest_divisor(s.k, tile_k, n.ks - 1)) {
    const std::int64_t sums = n.ms * n.ns * tile_n * 4, results = results_kept * n.ns * tile_n * size;
    const std::int64_t left = static_cast<std::int64_t>(chip.memory.sbuf_bytes) - sums - results;
    const std::int64_t turns = left / ((n.ms * tile_m + n.ns * tile_n) * size);
    n.turns = static_cast<int>(std::clamp<std::int64_t>(turns, 1, 2 * n.ks));
    if (n.turns > n.ks || n.ks == 1) return n;
  }
}

void fully_optimised(ProgramBuilder& b, const Sizes& s) {
  const Factors f = declare(b, s);
  const auto [ms, ns, ks, turns] = blocks_for(s, b.chip());
  const std::int64_t bm = ms * tile_m, bn = ns * tile_n, bk = ks * tile_k, blocks = s.k / bk;
  RotatingTiles as(b, "a_block", s.type, tile_k, bm, turns), bs(b, "b_block", s.type, tile_k, bn, turns);
  RotatingTiles products(b, "product", DType::f32, tile_m, tile_n, 8, MemorySpace::psum);
  RotatingTiles results(b, "c_tile", s.type, tile_m, bn, results_kept);
  for (std::int64_t n = 0; n < s.n; n += bn)
    for (std::int64_t m = 0; m < s.m; m += bm) {
      const TensorOperand sums = b.tile("sums", DType::f32, tile_m, ms * bn);
      for (std::int64_t block = 0; block < blocks; ++block) {
        std::vector<TensorOperand> at, bt;
        for (std::int64_t k = 0; k < ks; ++k) {
          at.push_back(as.next());
          bt.push_back(bs.next());
          load(b, bt.back(), part(f.b, block * bk + k * tile_k, tile_k, n, bn));
          load(b, at.back(), part(f.a, block * bk + k * tile_k, tile_k, m, bm));
        }
        for (std::int64_t t = 0; t < ms * ns; ++t) {
          const TensorOperand& product = products.next();
          for (std::int64_t k = 0; k < ks; ++k)
            matmul(b, product, at[static_cast<std::size_t>(k)].column_range(t / ns * tile_m, tile_m),
                   bt[static_cast<std::size_t>(k)].column_range(t % ns * tile_n, tile_n), k != 0);
          const TensorOperand sum = sums.column_range(t * tile_n, tile_n);
          if (block == 0)
            copy(b, sum, product);
          else
            tensor_tensor(b, sum, sum, AluOp::add, product);
        }
      }
      for (std::int64_t t = 0; t < ms; ++t) {
        const TensorOperand& result = results.next();
        copy(b, result, sums.column_range(t * bn, bn), Engine::scalar);
        store(b, part(f.c, m + t * tile_m, tile_m, n, bn), result);
      }
      b.free(sums);
    }
}

constexpr void (*stages[])(ProgramBuilder&, const Sizes&) = {tiled, hoist_load, block_free, fully_optimised};

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("matmul", chip);
  const std::string& stage = a.word("stage");
  const std::string names[] = {"tiled", "hoist_load", "block_free", "fully_optimised"};
  stages[std::ranges::find(names, stage) - names](b, sizes_of(a));
  return b.finish();
}

void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  fill_normal(memory, "a", a.type("type"), seed);
  fill_normal(memory, "b", a.type("type"), seed);
}

// Compares with the host's product of the same factors. The core adds 128 terms at a time, the host in another order:
// elements may differ by twice matmul_bound, and in bf16 by one more step.
std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const Sizes s = sizes_of(a);
  const std::size_t m = static_cast<std::size_t>(s.m), n = static_cast<std::size_t>(s.n),
                    k = static_cast<std::size_t>(s.k);
  std::vector<std::byte> truth(m * n * kernels::size_of(s.type));
  kernels::matmul({m, n, k}, s.type, {memory.hbm("a").data(), m, true}, {memory.hbm("b").data(), n}, s.type,
                  truth.data(), n);
  // Normal factors: |a b| is 0.64 on average, and no sum of k of them exceeds twice that.
  const double sums = kernels::matmul_bound(k, 1.3 * static_cast<double>(k), 3.2 * static_cast<double>(k));
  const double step = s.type == DType::f32 ? 0 : 1.0 / 128;
  return {compare_within("c", s.type, memory.hbm("c").data(), truth.data(), m * n, 2 * sums, step)};
}

const RegisteredProgram registered(
    {.name = "matmul",
     .summary = "c = a^T b, by the stages of the public tutorial",
     .parameters = {{"M", "rows of c", 4096, {}},
                    {"K", "terms of a sum", 4096, {}},
                    {"N", "columns of c", 4096, {}},
                    {"type", "of all three", 0, {"bf16", "f32"}},
                    {"stage", "what is kept on chip", 3, {"tiled", "hoist_load", "block_free", "fully_optimised"}}},
     .build = build,
     .fill = fill,
     .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
