// The builder: tiles, parts of operands, and the semaphores that it derives.
#include <gtest/gtest.h>

#include <string>

#include "sim/core/program/assembler.h"
#include "sim/core/program/emit_instructions.h"
#include "tests/why.h"

namespace trellis::sim::core {
namespace {

TEST(CoreBuilder, DerivesSemaphoresFromWhatIsTouched) {
  const ChipSpec chip = chip_named("trn2");
  ProgramBuilder b("scaled", chip);
  const TensorOperand from = b.input("from", DType::f32, 128, 64), to = b.output("to", DType::f32, 128, 64);
  const TensorOperand x = b.tile("x", DType::f32, 128, 64);
  for (int turn = 0; turn < 2; ++turn) {
    load(b, x, from);
    b.add("activation", Engine::scalar, {x}, {x}, {func(ActivationFunction::identity), number(Key::scale, 2)});
    store(b, to, x);
  }
  EXPECT_EQ(print(b.finish()),
            R"(program scaled cores=1
hbm from f32 bytes=32768 input
hbm to f32 bytes=32768 output
sbuf x f32 core=0 partitions=0+128 bytes=0+256
semaphore scalar
semaphore ring3
semaphore ring4
dma_copy sync ring=4 x[0+128 @0 64x1] <- from[0+128 @0 64x1 /256] signal ring4+1
activation scalar x[0+128 @0 64x1] <- x[0+128 @0 64x1] func=identity scale=2 wait ring4>=1 signal scalar+1
dma_copy gpsimd ring=3 to[0+128 @0 64x1 /256] <- x[0+128 @0 64x1] wait scalar>=1 signal ring3+1
dma_copy sync ring=4 x[0+128 @0 64x1] <- from[0+128 @0 64x1 /256] wait scalar>=1 wait ring3>=1 signal ring4+1
activation scalar x[0+128 @0 64x1] <- x[0+128 @0 64x1] func=identity scale=2 wait ring4>=2 signal scalar+1
dma_copy gpsimd ring=3 to[0+128 @0 64x1 /256] <- x[0+128 @0 64x1] wait scalar>=2
)");
}

TEST(CoreBuilder, SaysWhenMemoryOnChipIsFull) {
  const ChipSpec chip = chip_named("trn1");
  ProgramBuilder b("full", chip);
  const TensorOperand most = b.tile("most", DType::f32, 128, 48 * 1024);
  EXPECT_EQ(why([&] { b.tile("more", DType::f32, 1, 1); }),
            "more: no 4 bytes a partition left in sbuf; the largest free piece has 0");
  b.free(most);
  EXPECT_NO_THROW(b.tile("again", DType::f32, 128, 48 * 1024));
  EXPECT_EQ(why([&] {
              b.free(most);
              b.free(most);
            }),
            "most freed: it has no memory on chip");
  for (int bank = 0; bank < 8; ++bank) b.psum("bank" + std::to_string(bank), DType::f32, 128, 16);
  EXPECT_NE(why([&] { b.psum("ninth", DType::f32, 128, 1); }).find("no 4 bytes a partition left in psum"),
            std::string::npos);
  EXPECT_NE(why([&] { b.tile("tall", DType::f32, 129, 1); }).find("expected 1 to 128 rows"), std::string::npos);
}

TEST(CoreBuilder, PartsOfOperandsStayWithin) {
  const ChipSpec chip = chip_named("trn2");
  ProgramBuilder b("parts", chip);
  const TensorOperand m = b.input("m", DType::bf16, 64, 32);
  EXPECT_EQ(m.row_range(8, 4).view.offset, 8 * 64);
  EXPECT_EQ(m.column_range(4, 8).view.offset, 8);
  EXPECT_EQ(m.shaped({4, 8}).view.dim[0].stride, 8);
  EXPECT_EQ(why([&] { m.row_range(60, 5); }), "rows 60 to 64 of 64");
  EXPECT_EQ(why([&] { m.column_range(0, 33); }), "columns 0 to 32 of 32");
  EXPECT_EQ(why([&] { m.shaped({5, 7}); }), "a row of 32 elements shaped as 35 in 2 dimensions");
}

TEST(CoreBuilder, ByHandNothingIsDerived) {
  const ChipSpec chip = chip_named("trn2");
  ProgramBuilder b("hand", chip);
  const TensorOperand x = b.tile("x", DType::f32, 8, 8), y = b.tile("y", DType::f32, 8, 8);
  const std::int32_t s = b.semaphore("mine");
  b.signal(s);
  b.add("memset", Engine::gpsimd, {x}, {}, {number(Key::value, 1)});
  b.wait(s, 1);
  copy(b, y, x);
  const NeuronCoreProgram p = b.finish();
  EXPECT_EQ(p.semaphores, std::vector<std::string>{"mine"});
  EXPECT_EQ(p.waits_of(p.instructions[1])[0], (SemaphoreWait{s, 1}));
}

TEST(CoreBuilder, WaitsForEveryPartOfAReversedRow) {
  const ChipSpec chip = chip_named("trn2");
  ProgramBuilder b("reversed", chip);
  const TensorOperand x = b.tile("x", DType::f32, 8, 64), y = b.tile("y", DType::f32, 8, 64);
  TensorOperand reversed = x;
  reversed.view.offset = 63 * 4;
  reversed.view.dim[0].stride = -1;
  b.add("memset", Engine::vector, {x.column_range(0, 32)}, {}, {number(Key::value, 1)});
  b.add("memset", Engine::gpsimd, {x.column_range(32, 32)}, {}, {number(Key::value, 1)});
  copy(b, y, reversed, Engine::scalar);
  const NeuronCoreProgram p = b.finish();
  EXPECT_EQ(p.waits_of(p.instructions[2]).size(), 2U);
}

TEST(CoreBuilder, CopiesMovedByDataWaitForAllThatTheyMayTouch) {
  const ChipSpec chip = chip_named("trn2");
  const auto waits = [&](std::string_view kind, bool reads) {
    ProgramBuilder b("moved", chip);
    const TensorOperand x = b.tile("x", DType::f32, 8, 64), y = b.tile("y", DType::f32, 8, 8);
    const TensorOperand offset = b.tile("offset", DType::i32, 1, 1), part = x.column_range(0, 8);
    b.add("memset", Engine::gpsimd, {offset}, {}, {number(Key::value, 24)});
    b.add("memset", Engine::gpsimd, {y}, {}, {number(Key::value, 24)});
    b.add("memset", Engine::vector, {x.column_range(32, 8)}, {}, {number(Key::value, 1)});
    b.add(kind, Engine::gpsimd, {reads ? y : part}, {reads ? part : y, offset});
    copy(b, b.tile("z", DType::f32, 8, 8), x.column_range(32, 8), Engine::scalar);
    const NeuronCoreProgram p = b.finish();
    return std::pair{p.waits_of(p.instructions[3]).size(), p.waits_of(p.instructions[4]).size()};
  };
  EXPECT_EQ(waits("tensor_copy_dynamic_src", true), (std::pair<std::size_t, std::size_t>{2, 1}));
  EXPECT_EQ(waits("tensor_copy_dynamic_dst", false), (std::pair<std::size_t, std::size_t>{2, 1}));
}

}  // namespace
}  // namespace trellis::sim::core
