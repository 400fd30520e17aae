// Costs against the formulas, with the figures of the chips' files.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "sim/core/program/instructions_markdown.h"
#include "tests/sim/core/bench.h"

namespace trellis::sim::core {
namespace {

struct Case {
  std::string chip, kind;
  Engine engine;
  std::vector<Lie> outputs, inputs;
  std::vector<Attribute> keys;
  double cycles;
};

constexpr MemorySpace psum = MemorySpace::psum;
const auto bf16 = DType::bf16, f32 = DType::f32;

double cycles_of(const Case& c) {
  Bench b(c.chip);
  std::vector<View> outputs, inputs;
  for (const Lie& l : c.outputs) outputs.push_back(b.add(l));
  for (const Lie& l : c.inputs) inputs.push_back(b.add(l));
  b.set(c.kind, c.engine, outputs, inputs, c.keys);
  check(b.program, b.chip);
  return b.cycles();
}

// The formulas as the public documents state them, written out.
const Lie wide = plain(f32, 128, 2000), half = plain(bf16, 128, 2000), one = plain(f32, 128, 1);
const Lie strided = {bf16, 128, {{2000, 2}}};
const Lie from_psum = plain(bf16, 128, 2000, psum);
const auto add = with(AluOp::add), multiply = with(AluOp::multiply);
const Case cases[] = {
    {"trn1", "tensor_tensor", Engine::vector, {wide}, {wide, wide}, {add}, 4000},
    {"trn1", "tensor_tensor", Engine::vector, {half}, {half, half}, {add}, 2000},
    {"trn1", "tensor_tensor", Engine::vector, {half}, {half, half}, {with(AluOp::max)}, 4000},
    {"trn1", "tensor_tensor", Engine::vector, {half}, {strided, half}, {add}, 4000},
    {"trn1", "tensor_tensor", Engine::vector, {wide}, {from_psum, wide}, {add}, 2000},
    {"trn1", "tensor_tensor", Engine::vector, {one}, {one, one}, {add}, 64},
    {"trn2", "tensor_tensor", Engine::vector, {half}, {half, half}, {with(AluOp::max)}, 1000},
    {"trn2", "tensor_tensor", Engine::vector, {half}, {from_psum, half}, {add}, 2000},
    {"trn2", "tensor_tensor", Engine::vector, {wide}, {wide, wide}, {add}, 2000},
    {"trn2", "tensor_copy_predicated", Engine::vector, {wide}, {plain(DType::u8, 128, 2000), wide}, {}, 2000},
    {"trn1", "tensor_copy", Engine::vector, {half}, {half}, {}, 2000},
    {"trn2", "tensor_copy", Engine::vector, {half}, {half}, {}, 500},
    {"trn2", "tensor_copy", Engine::vector, {half}, {strided}, {}, 1000},
    {"trn2", "tensor_copy", Engine::vector, {half}, {from_psum}, {}, 1000},
    {"trn2", "tensor_copy", Engine::vector, {wide}, {half}, {}, 2000},
    {"trn2", "tensor_scalar", Engine::vector, {half}, {half}, {add, with(Key::value, 1)}, 500},
    {"trn3", "tensor_scalar", Engine::scalar, {half}, {half}, {add, with(Key::value, 1)}, 1000},
    {"trn1",
     "scalar_tensor_tensor",
     Engine::vector,
     {half},
     {half, half},
     {add, with(Key::value, 1), with(AluOp::multiply, Key::op1)},
     2000},
    {"trn1",
     "scalar_tensor_tensor",
     Engine::vector,
     {wide},
     {wide, wide},
     {add, with(Key::value, 1), with(AluOp::multiply, Key::op1)},
     4000},
    {"trn1",
     "tensor_tensor_scan",
     Engine::vector,
     {wide},
     {wide, wide},
     {multiply, with(AluOp::add, Key::op1), with(Key::value, 0)},
     4000},
    {"trn1", "tensor_reduce", Engine::vector, {one}, {wide}, {add}, 2000},
    {"trn1", "tensor_reduce", Engine::vector, {plain(bf16, 128, 1)}, {half}, {add}, 1000},
    {"trn1", "tensor_scalar_reduce", Engine::vector, {wide, one}, {wide}, {add, with(Key::value, 1)}, 2064},
    {"trn1", "memset", Engine::vector, {half}, {}, {with(Key::value, 0)}, 1000},
    {"trn1", "memset", Engine::vector, {half}, {}, {with(Key::value, 1)}, 2000},
    {"trn1", "reciprocal", Engine::vector, {wide}, {wide}, {}, 16000},
    {"trn1", "reciprocal", Engine::scalar, {wide}, {wide}, {}, 2000},
    {"trn1", "activation", Engine::scalar, {wide}, {wide}, {with(ActivationFunction::exp)}, 2000},
    {"trn3", "activation", Engine::scalar, {half}, {half}, {with(ActivationFunction::exp)}, 1000},
    {"trn1", "activation_reduce", Engine::scalar, {wide, one}, {wide}, {with(ActivationFunction::exp)}, 2064},
    {"trn3", "exponential", Engine::vector, {wide}, {wide}, {}, 500},
    {"trn1", "iota", Engine::gpsimd, {wide}, {}, {}, 2150},
    {"trn1", "affine_select", Engine::gpsimd, {wide}, {wide}, {with(Key::value, 0)}, 2150},
    {"trn1", "bn_stats", Engine::vector, {plain(f32, 128, 6)}, {plain(f32, 128, 500)}, {}, 500},
    {"trn1", "bn_aggr", Engine::vector, {plain(f32, 128, 2)}, {plain(f32, 128, 300)}, {}, 1300},
    {"trn1", "max8", Engine::vector, {plain(f32, 128, 8)}, {wide}, {}, 2000},
    {"trn1", "tensor_copy_predicated", Engine::vector, {wide}, {plain(DType::u8, 128, 2000), wide}, {}, 4000},
    {"trn1", "tensor_copy_predicated", Engine::vector, {half}, {plain(DType::u8, 128, 2000), from_psum}, {}, 2000},
    {"trn1",
     "tensor_copy_dynamic_src",
     Engine::vector,
     {plain(f32, 128, 100)},
     {plain(f32, 128, 100), plain(DType::i32, 1, 1)},
     {},
     600},
    {"trn1", "tensor_copy_dynamic_src", Engine::vector, {wide}, {wide, plain(DType::i32, 1, 1)}, {}, 2000},
    {"trn2",
     "topk",
     Engine::gpsimd,
     {plain(bf16, 128, 10), plain(DType::u32, 128, 10)},
     {half},
     {with(Key::count, 1000)},
     4010},
    {"trn1", "nc_transpose", Engine::vector, {plain(f32, 32, 32)}, {plain(f32, 32, 32)}, {}, 64},
    // 150 + n e / C, C = ((28 + 4 e) / (4 e)) / min(4 / 2, e), for 64 indices of 2 elements of two bytes
    {"trn1",
     "local_gather",
     Engine::gpsimd,
     {plain(bf16, 128, 128)},
     {half, plain(DType::u16, 128, 4)},
     {with(Key::step, 2)},
     150 + 64 * 2 / (36.0 / 8 / 2)},
};

TEST(CoreCost, IsTheDocumentedFormula) {
  for (const Case& c : cases) EXPECT_NEAR(cycles_of(c), c.cycles, 0.1) << c.chip << " " << c.kind;
}

TEST(CoreCost, ProductsAreMovingRows) {
  const auto product = [](std::string chip, DType type, std::int32_t m, std::int32_t n,
                          std::vector<Attribute> keys = {}) {
    return Case{
        chip, "nc_matmul", Engine::tensor, {plain(f32, m, n, psum)}, {plain(type, 64, m), plain(type, 64, n)}, keys, 0};
  };
  for (const std::string chip : {"trn1", "trn2", "trn3"}) {
    const TensorSpec t = chip_named(chip).tensor;
    EXPECT_NEAR(cycles_of(product(chip, bf16, 128, 512)), 512 * t.row_cycles_wide + t.load_exposed, 0.1);
    EXPECT_NEAR(cycles_of(product(chip, f32, 128, 512)), 512 * t.row_cycles_f32 + t.passes_f32 * t.load_exposed, 0.1);
    EXPECT_NEAR(cycles_of(product(chip, bf16, 128, 1)), 64 * t.row_cycles_wide + t.load_exposed, 0.1);
    EXPECT_NEAR(cycles_of(product(chip, bf16, 64, 512, {with(Key::tile_rows, 64)})),
                (512 * t.row_cycles_wide + t.load_exposed) / 2, 0.1);
  }
  const TensorSpec t = chip_named("trn3").tensor;
  const Case mx = {"trn3",
                   "nc_matmul_mx",
                   Engine::tensor,
                   {plain(f32, 64, 512, psum)},
                   {plain(DType::f8e5m2, 128, 256), plain(DType::f8e5m2, 128, 2048), plain(DType::u8, 100, 64),
                    plain(DType::u8, 100, 512)},
                   {},
                   0};
  EXPECT_NEAR(cycles_of(mx), 2048 * t.row_cycles_mx + t.load_exposed, 0.1);
}

TEST(CoreCost, SequencersAndBarriersTakeTheirFigures) {
  Bench b;
  b.set("register_move", Engine::vector, {}, {}, {with(Key::target, 1), with(Key::value, 2)});
  EXPECT_EQ(b.cost().interval, b.chip.semaphore_instruction);
  b.set("core_barrier", Engine::gpsimd, {}, {});
  EXPECT_NEAR(static_cast<double>(b.cost().interval), static_cast<double>(b.chip.core_barrier), 1);
  const View x = b.add(plain(f32, 1, 10, MemorySpace::hbm)), z = b.add(plain(f32, 1, 10, MemorySpace::hbm));
  b.set("all_reduce", Engine::gpsimd, {z}, {x}, {with(AluOp::add), with(Key::duration, 12'000)});
  check(b.program, b.chip);
  EXPECT_EQ(b.cost().interval, b.chip.semaphore_instruction);
  EXPECT_NEAR(static_cast<double>(b.cost().latency - b.chip.engine[3].latency), 12'000'000, 1000);
}

TEST(CoreCost, IndirectTransfersMoveTheRowsOfTheIndex) {
  Bench b;
  const View table = b.add(plain(bf16, 5000, 512, MemorySpace::hbm)), z = b.add(plain(bf16, 32, 512));
  const View index = b.add(plain(DType::u32, 32, 1));
  b.set("dma_gather", Engine::gpsimd, {z}, {table, index});
  const DmaWork gather = dma_work(b.call(), b.chip);
  EXPECT_EQ(gather.bytes, 32 * 1024);
  EXPECT_EQ(gather.hbm_read, 32 * 1024);
  EXPECT_EQ(gather.descriptors, 32U);
  b.set("dma_scatter", Engine::gpsimd, {table}, {z, index});
  EXPECT_EQ(dma_work(b.call(), b.chip).hbm_written, 32 * 1024);
}

// Every kind has a cost on every engine that it names, on all chips from its generation on.
TEST(CoreCost, IsThereForEveryEngine) {
  for (const auto& [kind_name, kind] : kinds())
    for (const std::string chip : {"trn1", "trn2", "trn3"}) {
      const ChipSpec spec = chip_named(chip);
      if (spec.generation < kind.generation || kind.sequencer || kind.dma || !kind.cost.empty()) continue;
      for (const Engine e : kind.engines) {
        if (e == Engine::vector && kind_name.starts_with("rand_") && spec.generation < 4) continue;  // as check says
        EXPECT_TRUE(spec.cost(kind_name, static_cast<int>(e)).there) << chip << ": " << kind_name << " on " << name(e);
      }
    }
}

TEST(CoreInstructions, AreListedAsPrinted) {
  std::ifstream file(TRELLIS_SOURCE_DIR "/sim/core/INSTRUCTIONS.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string printed = instruction_table();
  const std::string right = testing::TempDir() + "INSTRUCTIONS.md";
  if (text.str() != printed) std::ofstream(right) << printed;
  EXPECT_EQ(text.str(), printed) << "the right one is now in " << right;
}

}  // namespace
}  // namespace trellis::sim::core
