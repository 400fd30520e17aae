#include "kernels/reduce/reduce.h"

#include <fmt/format.h>

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"
#include "text/refuse.h"

// out = source0 + source1 + ..., added in f32 in this order and rounded once: by Vector, or by the DMA engines alone.
namespace trellis::sim::core {
namespace {

constexpr std::int64_t columns = 2048, most_dma_sources = 16, most_sources = 64;

struct Sizes {
  std::int64_t n, k;
  DType type;
};

Sizes sizes_of(const Arguments& a) {
  const Sizes s{a.count("n"), a.count("sources"), a.type("type")};
  if (s.k > most_sources) text::refuse("reduce: sources={}; expected at most {}", s.k, most_sources);
  return s;
}

std::string source_name(std::int64_t i) { return fmt::format("source{}", i); }

std::vector<TensorOperand> declare(ProgramBuilder& b, const Sizes& s) {
  std::vector<TensorOperand> sources;
  for (std::int64_t i = 0; i < s.k; ++i) sources.push_back(b.input(source_name(i), s.type, 1, s.n));
  return sources;
}

void by_vector(ProgramBuilder& b, const Sizes& s, const std::vector<TensorOperand>& sources, const TensorOperand& out) {
  RotatingTiles loaded(b, "loaded", s.type, 128, columns, 4), results(b, "result", s.type, 128, columns, 2);
  RotatingTiles sums(b, "sum", DType::f32, 128, columns, 2);
  for (const RowTile& p : pieces_of(s.n, columns)) {
    const auto next = [&](RotatingTiles& r) { return part_of_tile(r.next(), p); };
    TensorOperand sum;
    for (std::int64_t i = 0; i < s.k; ++i) {
      const TensorOperand tile = next(loaded);
      load(b, tile, part_of(sources[static_cast<std::size_t>(i)], p));
      if (i == 0) {
        sum = tile;
        continue;
      }
      const TensorOperand to = i + 1 == s.k ? next(results) : i == 1 ? next(sums) : sum;
      tensor_tensor(b, to, sum, AluOp::add, tile);
      sum = to;
    }
    store(b, part_of(out, p), sum);
  }
}

// If there are more sources than one instruction takes, a partial sum in f32 is used.
void by_dma(ProgramBuilder& b, const Sizes& s, const std::vector<TensorOperand>& sources, const TensorOperand& out) {
  TensorOperand partial;
  for (std::int64_t first = 0, taken = 0; first < s.k; first += taken) {
    taken = std::min(s.k - first, most_dma_sources - (first != 0));
    const bool last = first + taken == s.k;
    const TensorOperand to = last ? out : b.scratch(fmt::format("partial{}", first), DType::f32, 1, s.n);
    for (const RowTile& p : pieces_of(s.n, columns)) {
      std::vector<TensorOperand> inputs;
      if (first != 0) inputs.push_back(part_of(partial, p));
      for (std::int64_t i = first; i < first + taken; ++i)
        inputs.push_back(part_of(sources[static_cast<std::size_t>(i)], p));
      b.add("dma_compute", Engine::sync, {part_of(to, p)}, inputs, {alu(AluOp::add)});
    }
    partial = to;
  }
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("reduce", chip);
  const Sizes s = sizes_of(a);
  const std::vector<TensorOperand> sources = declare(b, s);
  const TensorOperand out = b.output("out", s.type, 1, s.n);
  (a.word("by") == "vector" ? by_vector : by_dma)(b, s, sources, out);
  return b.finish();
}

void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  const Sizes s = sizes_of(a);
  for (std::int64_t i = 0; i < s.k; ++i) fill_normal(memory, source_name(i), s.type, seed);
}

std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const Sizes s = sizes_of(a);
  const auto n = static_cast<std::size_t>(s.n);
  std::vector<const void*> sources;
  for (std::int64_t i = 0; i < s.k; ++i) sources.push_back(memory.hbm(source_name(i)).data());
  std::vector<std::byte> truth(n * kernels::size_of(s.type));
  kernels::reduce(kernels::Reduction::sum, s.type, sources, truth.data(), n);
  return {compare_bits("out", s.type, memory.hbm("out").data(), truth.data(), n)};
}

const RegisteredProgram registered({.name = "reduce",
                                    .summary = "the sum of several sources, in order, in f32, rounded once",
                                    .parameters = {{"n", "elements", 1 << 22, {}},
                                                   {"sources", "how many", 4, {}},
                                                   {"type", "of all", 0, {"bf16", "f32"}},
                                                   {"by", "who adds", 0, {"vector", "dma"}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
