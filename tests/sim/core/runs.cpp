// A program's run: its time against closed forms, the order of instructions on an engine, and programs that never end.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sim/core/check/race_detector.h"
#include "sim/core/program/assembler.h"
#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/run/instruction_cost.h"
#include "tests/why.h"

namespace trellis::sim::core {
namespace {

class OnEveryChip : public testing::TestWithParam<std::string> {
 protected:
  ChipSpec chip_ = chip_named(GetParam());
};

TEST_P(OnEveryChip, ALoadTakesItsTriggerStartBytesAndEnd) {
  ProgramBuilder b("load", chip_);
  load(b, b.tile("tile", DType::f32, 128, 1024), b.input("from", DType::f32, 128, 1024));
  const NeuronCoreProgram p = b.finish();
  const DmaWork work = dma_work(BoundInstruction(p, p.instructions.front()), chip_);
  const Time last = chip_.dma.stagger + work.shares.back().time;
  EXPECT_EQ(run(p, chip_).time, work.trigger + work.start + last + chip_.dma.done);
  EXPECT_EQ(work.descriptors, 128U);
  EXPECT_EQ(work.bytes, 128.0 * 4096);
}

TEST_P(OnEveryChip, IndependentInstructionsStartAnIntervalApart) {
  ProgramBuilder b("copies", chip_);
  const TensorOperand from = b.tile("from", DType::f32, 128, 512);
  b.add("memset", Engine::vector, {from}, {}, {number(Key::value, 1)});
  const int copies = 10;
  for (int i = 0; i < copies; ++i)
    b.add("memset", Engine::gpsimd, {b.tile("to" + std::to_string(i), DType::f32, 128, 512)}, {},
          {number(Key::value, 1)});
  const NeuronCoreProgram p = b.finish();
  const InstructionCost cost = cost_of(BoundInstruction(p, p.instructions.back()), chip_);
  const Time gpsimd = (copies - 1) * cost.interval + cost.latency;
  const Time shared =
      chip_.vector_gpsimd_share ? cost_of(BoundInstruction(p, p.instructions.front()), chip_).interval : 0;
  EXPECT_EQ(run(p, chip_).time, gpsimd + shared);
}

TEST_P(OnEveryChip, ADependentInstructionWaitsForResultsAndTheSemaphore) {
  ProgramBuilder b("chain", chip_);
  const TensorOperand x = b.tile("x", DType::f32, 128, 64), y = b.tile("y", DType::f32, 128, 64),
                      z = b.tile("z", DType::f32, 128, 64);
  b.add("memset", Engine::gpsimd, {x}, {}, {number(Key::value, 1)});
  copy(b, y, x, Engine::vector);
  copy(b, z, y, Engine::scalar);
  const NeuronCoreProgram p = b.finish();
  Time expected = 0;
  for (const Instruction& i : p.instructions) expected += cost_of(BoundInstruction(p, i), chip_).latency;
  EXPECT_EQ(run(p, chip_).time, expected + 2 * chip_.semaphore_latency);
}

TEST_P(OnEveryChip, ATimelineChangesNoTime) {
  const ShippedProgram& matmul = shipped_named("matmul");
  Arguments a(matmul.parameters);
  for (const char* size : {"M", "K"}) a.set(size, "256");
  a.set("N", "512");
  const NeuronCoreProgram p = matmul.build(a, chip_);
  Timeline timeline;
  const Time time = run(p, chip_).time;
  EXPECT_EQ(run(p, chip_, {.timeline = &timeline}).time, time);
  EXPECT_EQ(timeline.end, time);
  for (const Span& s : timeline.spans) {
    EXPECT_LE(s.start, s.end);
    const Span& cause = timeline.spans[s.cause < 0 ? 0 : static_cast<std::size_t>(s.cause)];
    EXPECT_LE(cause.start, s.start);
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, OnEveryChip, testing::Values("trn1", "inf2", "trn2", "trn3", "ideal"));

// How long `count` products of `rows` x 128 and `rows` x 512 take, and one of them.
std::pair<Time, Time> products(const ChipSpec& chip, int rows, int count) {
  ProgramBuilder b("products", chip);
  const TensorOperand stationary = b.tile("stationary", DType::bf16, rows, 128),
                      moving = b.tile("moving", DType::bf16, rows, 512);
  for (int i = 0; i < count; ++i)
    b.add("nc_matmul", Engine::tensor, {b.psum("product" + std::to_string(i), DType::f32, 128, 512)},
          {stationary, moving});
  const NeuronCoreProgram p = b.finish();
  const InstructionCost one = cost_of(BoundInstruction(p, p.instructions.back()), chip);
  return {run(p, chip).time - (one.latency - one.interval), one.interval};
}

TEST(CoreRuns, TensorStartsAtHalfItsRateUntilAWindowIsFull) {
  const ChipSpec chip = chip_named("trn2");
  const auto [time, one] = products(chip, 128, 8);
  const auto slow =
      static_cast<Time>(static_cast<double>(chip.tensor.ramp) * 2 * chip.tensor.ramp_least) / (2 * one) + 1;
  ASSERT_LT(slow, 8);
  EXPECT_EQ(time, (8 + slow) * one);
}

TEST(CoreRuns, TensorStaysAtHalfItsRateWhereHalfOfItsRowsAreIdle) {
  const auto [time, one] = products(chip_named("trn2"), 64, 8);
  EXPECT_EQ(time, 2 * 8 * one);
  const auto [older, each] = products(chip_named("trn1"), 64, 8);
  EXPECT_EQ(older, 8 * each);
}

// The compilers up to release 2.21 did without prefetch.
TEST(CoreRuns, WithoutPrefetchARingRestsBetweenTransfers) {
  Figures figures = chip_named("trn1").figures();
  figures.set("dma.prefetch", 0);
  figures.set("dma.interval", "350 ns");
  const ChipSpec chip("trn1", figures);
  const auto time_of = [&](int loads) {
    ProgramBuilder b("loads", chip);
    const TensorOperand from = b.input("from", DType::f32, 128, 256);
    for (int i = 0; i < loads; ++i) load(b, b.tile("tile" + std::to_string(i), DType::f32, 128, 256), from);
    return run(b.finish(), chip).time;
  };
  const Time one = time_of(2) - time_of(1);
  EXPECT_EQ(time_of(9) - time_of(1), 8 * one);
  ProgramBuilder b("one", chip);
  load(b, b.tile("tile", DType::f32, 128, 256), b.input("from", DType::f32, 128, 256));
  const NeuronCoreProgram p = b.finish();
  EXPECT_EQ(one, dma_work(BoundInstruction(p, p.instructions[0]), chip).shares[0].time + chip.dma.stagger +
                     chip.dma.generate + chip.dma.interval);
}

// Two rings with equal work share the engines: both end when one alone would have moved twice as much.
TEST(CoreRuns, RingsShareTheEngines) {
  const ChipSpec chip = chip_named("trn2");
  const auto bytes_time = [&](int rings) {
    ProgramBuilder b("rings", chip);
    const TensorOperand from = b.input("from", DType::f32, 128, 8192);
    for (int r = 0; r < rings; ++r) {
      const TensorOperand tile = b.tile("tile" + std::to_string(r), DType::f32, 128, 8192);
      b.add("dma_copy", Engine::sync, {tile}, {from}, {}, {.ring = r});
    }
    return run(b.finish(), chip).time;
  };
  const Time one = bytes_time(1), two = bytes_time(2);
  const double moving = 128.0 * 32768 / (chip.dma.engines * chip.dma.engine_rate) * 1e12;
  EXPECT_NEAR(static_cast<double>(two - one), moving, 0.1 * moving);
}

constexpr const char* crossed = R"(program crossed cores=1
sbuf x f32 core=0 partitions=0+128 bytes=0+256
semaphore a
semaphore b
memset vector x[0+128 @0 64x1] value=1 wait a>=1 signal b+1
memset gpsimd x[0+128 @0 64x1] value=2 wait b>=1 signal a+1
)";

TEST(CoreRuns, WhatCanNeverEndNamesWhoWaitsForWhom) {
  const std::string text = why([] { run(parse(crossed), chip_named("trn2")); });
  EXPECT_NE(text.find("core 0 vector at its instruction 0 (memset, line 5) waits for a to be 1, and it is 0, which "
                      "core 0 gpsimd would raise at its instruction 0"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("core 0 gpsimd at its instruction 0 (memset, line 6) waits for b"), std::string::npos) << text;
}

TEST(CoreRuns, ASemaphoreThatNobodyRaisesIsNamed) {
  const std::string text = why([] {
    run(parse("program p cores=1\nsbuf x f32 core=0 partitions=0+8 bytes=0+64\nsemaphore never\n"
              "memset vector x[0+8 @0 4x1] value=1 wait never>=2\n"),
        chip_named("trn1"));
  });
  EXPECT_NE(text.find("waits for never to be 2, and it is 0, and nobody raises it any more"), std::string::npos)
      << text;
}

TEST(CoreRuns, LoopsCountAndLeadThroughMemory) {
  const ChipSpec chip = chip_named("trn2");
  const NeuronCoreProgram p = parse(R"(program loop cores=1
hbm out f32 bytes=1024 output
sbuf x f32 core=0 partitions=0+1 bytes=0+1024
semaphore done
loop gpsimd to=3 start=0 step=1 count=16
memset gpsimd x[0+1 @0 16x1 r3*64] value=7 signal done+1
end_loop gpsimd
dma_copy sync ring=0 out[0+1 @0 256x1 /1024] <- x[0+1 @0 256x1] wait done>=16
)");
  CoreMemory memory(p, chip);
  const RunTotals t = run(p, chip, {.memory = &memory});
  for (const float value : memory.hbm_as<float>("out")) EXPECT_EQ(value, 7);
  EXPECT_EQ(t.instructions, 1U + 16 + 16 + 1);
  EXPECT_EQ(run(p, chip).time, t.time);
}

// A DMA in a loop may end when its engine is iterations ahead, and still moves the data of its own iteration.
TEST(CoreRuns, TransfersOfALoopTakeTheirRegistersWithThem) {
  const ChipSpec chip = chip_named("trn2");
  const NeuronCoreProgram p = parse(R"(program loop cores=1
hbm in f32 bytes=4096 input
hbm out f32 bytes=4096 output
loop sync to=3 start=0 step=1 count=16
dma_copy sync ring=0 out[0+1 @0 64x1 /256 r3*256] <- in[0+1 @0 64x1 /256 r3*256]
end_loop sync
)");
  CoreMemory memory(p, chip);
  const auto in = memory.hbm_as<float>("in");
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  run(p, chip, {.memory = &memory});
  const auto out = memory.hbm_as<float>("out");
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(i));
}

// A DMA uses a register's value at its trigger, though the register changes before the transfer is done.
TEST(CoreRuns, TransfersDoNotSeeLaterRegisters) {
  const ChipSpec chip = chip_named("trn2");
  const NeuronCoreProgram p = parse(R"(program moved cores=1
hbm in f32 bytes=512 input
hbm out f32 bytes=512 output
register_move sync to=3 value=0
dma_copy sync ring=0 out[0+1 @0 64x1 /256 r3*256] <- in[0+1 @0 64x1 /256 r3*256]
register_move sync to=3 value=1
dma_copy sync ring=0 out[0+1 @0 64x1 /256 r3*256] <- in[0+1 @0 64x1 /256 r3*256]
)");
  CoreMemory memory(p, chip);
  const auto in = memory.hbm_as<float>("in");
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i + 1);
  run(p, chip, {.memory = &memory});
  const auto out = memory.hbm_as<float>("out");
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(i + 1));
}

TEST(CoreRuns, ARegisterHoldsWhatAnAddressCanBeMadeOf) {
  const ChipSpec chip = chip_named("trn2");
  const auto run_moves = [&](const std::string& value, const std::string& added) {
    run(parse("program moves cores=1\nregister_move sync to=3 value=" + value +
              "\nregister_add sync to=3 value=" + added + "\n"),
        chip, {});
  };
  EXPECT_NO_THROW(run_moves("1e12", "-1e12"));
  for (const auto& [value, added] : {std::pair("1e300", "0"), {"1e12", "1"}, {"-1e13", "0"}})
    EXPECT_THROW(run_moves(value, added), std::invalid_argument) << value << " + " << added;
}

// A register must not lead a transfer beyond its buffer by a single byte. Here the last iteration would move 192 bytes
// that lie beyond it.
TEST(CoreRuns, RegistersLeadNoByteOutOfABuffer) {
  const ChipSpec chip = chip_named("trn2");
  const auto told = [&](const std::string& lines) {
    return why([&] {
      const NeuronCoreProgram p = parse("program p cores=1\n" + lines);
      CoreMemory memory(p, chip);
      run(p, chip, {.memory = &memory});
    });
  };
  const std::string hbm = "hbm in f32 bytes=4096 input\nhbm out f32 bytes=4096 output\n";
  const auto in_loop = [&](int count) {
    return hbm + "loop sync to=3 count=" + std::to_string(count) +
           "\ndma_copy sync ring=0 out[0+1 @0 64x1 /256 r3*252] <- in[0+1 @0 64x1 /256 r3*252]\nend_loop sync\n";
  };
  EXPECT_EQ(told(in_loop(16)), "");
  EXPECT_NE(told(in_loop(17)).find("p: register 3 = 16 leads to bytes 4032 to 4287 of "), std::string::npos)
      << told(in_loop(17));
  const std::string reversed =
      "sbuf x f32 core=0 partitions=0+1 bytes=64+64\nsbuf y f32 core=0 partitions=0+1 bytes=0+64\n"
      "register_move vector to=3 value=-1\ntensor_copy vector x[0+1 @60 16x-1 r3*4] <- y[0+1 @0 16x1]\n";
  EXPECT_NE(told(reversed).find("p: register 3 = -1 leads to bytes -4 to 59 of x, which has 64"), std::string::npos)
      << told(reversed);
  const std::string far = hbm +
                          "register_move sync to=3 value=1e12\n"
                          "dma_copy sync ring=0 out[0+1 @0 1x1] <- in[0+1 @0 1x1 r3*17592186044416]\n";
  EXPECT_NE(told(far).find("p: register 3 = 1000000000000 leads to bytes "), std::string::npos) << told(far);
}

// register_load loads list[r0] into r0 itself: the address is formed with the former value, 2.
TEST(CoreRuns, ARegisterIsLoadedThroughItsFormerValue) {
  const ChipSpec chip = chip_named("trn2");
  const NeuronCoreProgram p = parse(R"(program list cores=1
hbm list i32 bytes=16 input
hbm out i32 bytes=4 output
register_move sync to=0 value=2
register_load sync <- list[0+1 @0 1x1 /4 r0*4] to=0
register_store sync out[0+1 @0 1x1 /4] from=0
)");
  CoreMemory memory(p, chip);
  const auto list = memory.hbm_as<std::int32_t>("list");
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = static_cast<std::int32_t>(5 + i);
  run(p, chip, {.memory = &memory});
  EXPECT_EQ(memory.hbm_as<std::int32_t>("out")[0], 7);
}

TEST(CoreRuns, ARegisterIsLoadedWithWhatItHolds) {
  const ChipSpec chip = chip_named("trn2");
  const NeuronCoreProgram p = parse(R"(program numbers cores=1
hbm from f32 bytes=4 input
register_load sync <- from[0+1 @0 1x1 /4] to=0
)");
  CoreMemory memory(p, chip);
  for (const float value : {NAN, INFINITY, 1e30F, -1e13F}) {
    memory.hbm_as<float>("from")[0] = value;
    EXPECT_NE(why([&] { run(p, chip, {.memory = &memory}); }).find("a register cannot hold "), std::string::npos)
        << value;
  }
  memory.hbm_as<float>("from")[0] = -1e9F;
  EXPECT_NO_THROW(run(p, chip, {.memory = &memory}));
}

// The wait is for 16, as register 3 is 1. The instruction that raises done is behind the engine's position: it would
// run again in the loop's next iteration, which never begins.
TEST(CoreRuns, WhatCanNeverEndNamesValuesAndLoops) {
  const std::string text = why([] {
    run(parse(R"(program p cores=1
sbuf x f32 core=0 partitions=0+128 bytes=0+256
semaphore done
semaphore go
register_move vector to=3 value=1
memset vector x[0+128 @0 64x1] value=1 wait done>=0+r3*16
loop gpsimd to=3 count=4
memset gpsimd x[0+128 @0 64x1] value=2 signal done+1
memset gpsimd x[0+128 @0 64x1] value=2 wait go>=1
end_loop gpsimd
)"),
        chip_named("trn2"));
  });
  EXPECT_NE(text.find("waits for done to be 16, and it is 1, which core 0 gpsimd would raise at its instruction 1"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace trellis::sim::core
