// The race detector: it reports nothing for the builder's programs, and a race for each wait that is removed.
#include <gtest/gtest.h>

#include <random>

#include "sim/core/check/race_detector.h"
#include "sim/core/program/assembler.h"
#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/shipped_programs.h"

namespace trellis::sim::core {
namespace {

NeuronCoreProgram small_matmul(const ChipSpec& chip, const char* stage) {
  const ShippedProgram& matmul = shipped_named("matmul");
  Arguments a(matmul.parameters);
  a.set("M", "256");
  a.set("K", "512");
  a.set("N", "1024");
  a.set("stage", stage);
  return matmul.build(a, chip);
}

class Stages : public testing::TestWithParam<const char*> {};

TEST_P(Stages, HaveNoRace) {
  for (const char* chip : {"trn1", "trn2", "trn3", "ideal"})
    EXPECT_EQ(races(small_matmul(chip_named(chip), GetParam()), chip_named(chip)), std::vector<std::string>{});
}

// If any one of the builder's waits is removed, some two instructions race.
TEST_P(Stages, EveryWaitIsMissed) {
  const ChipSpec chip = chip_named("trn2");
  const NeuronCoreProgram whole = small_matmul(chip, GetParam());
  int damaged = 0;
  for (std::size_t at = 0; at < whole.instructions.size(); ++at) {
    if (whole.instructions[at].waits.count != 1) continue;
    NeuronCoreProgram p = whole;
    p.instructions[at].waits.count = 0;
    ++damaged;
    EXPECT_FALSE(races(p, chip).empty()) << print(whole, whole.instructions[at]);
  }
  EXPECT_GT(damaged, 10);
}

INSTANTIATE_TEST_SUITE_P(Matmul, Stages, testing::Values("tiled", "hoist_load", "block_free", "fully_optimised"));

TEST(CoreRaces, AreNamedWithTheirInstructionsAndTheMemory) {
  const NeuronCoreProgram p = parse(R"(program p cores=1
hbm in f32 bytes=32768 input
sbuf x f32 core=0 partitions=0+128 bytes=0+256
sbuf y f32 core=0 partitions=0+128 bytes=256+256
semaphore s
dma_copy sync ring=0 x[0+128 @0 64x1] <- in[0+128 @0 64x1 /256]
tensor_copy vector y[0+128 @0 64x1] <- x[0+128 @0 64x1]
)");
  const std::vector<std::string> found = races(p, chip_named("trn2"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0],
            "line 6 (dma_copy on sync, ring 0) writes x that line 7 (tensor_copy on vector) reads, and no semaphore "
            "puts them in order");
}

TEST(CoreRaces, TouchesSideBySideAreNone) {
  const NeuronCoreProgram p = parse(R"(program p cores=1
sbuf x f32 core=0 partitions=0+128 bytes=0+256
memset vector x[0+64 @0 64x1] value=1
memset gpsimd x[64+64 @0 64x1] value=2
memset vector x[0+128 @0 1x1] value=1
)");
  EXPECT_EQ(races(p, chip_named("trn2")).size(), 1U);  // between the last memset and the one on gpsimd
}

// Two instructions raise the semaphore: a wait for 2 orders both, and a wait for 1 neither.
TEST(CoreRaces, AllThatACountNeedsIsInOrder) {
  const NeuronCoreProgram p = parse(R"(program p cores=1
sbuf x f32 core=0 partitions=0+128 bytes=0+256
sbuf y f32 core=0 partitions=0+128 bytes=256+256
sbuf z f32 core=0 partitions=0+128 bytes=512+256
semaphore s
memset gpsimd x[0+128 @0 64x1] value=1 signal s+1
memset vector y[0+128 @0 64x1] value=1 signal s+1
tensor_copy scalar z[0+128 @0 64x1] <- y[0+128 @0 64x1] wait s>=2
)");
  EXPECT_TRUE(races(p, chip_named("trn2")).empty());
  NeuronCoreProgram early = p;
  early.waits[0].value = 1;
  EXPECT_EQ(races(early, chip_named("trn2")).size(), 1U);
}

// A row that is read backwards begins at its last element in memory.
TEST(CoreRaces, ReversedRowsReachBelowTheirFirstElement) {
  const NeuronCoreProgram p = parse(R"(program p cores=1
sbuf x f32 core=0 partitions=0+128 bytes=0+256
sbuf y f32 core=0 partitions=0+128 bytes=256+256
semaphore g
memset vector x[0+128 @0 32x1] value=1
memset gpsimd x[0+128 @128 32x1] value=1 signal g+1
tensor_copy scalar y[0+128 @0 64x1] <- x[0+128 @252 64x-1] wait g>=1
)");
  const std::vector<std::string> found = races(p, chip_named("trn2"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("line 7 (tensor_copy on scalar) reads x that line 5 (memset on vector) writes"),
            std::string::npos)
      << found[0];
}

// What a dynamic copy reads is anywhere in the rows of its buffer, and what it writes, too.
TEST(CoreRaces, CopiesMovedByDataMayTouchTheirWholeBuffers) {
  const std::string text = R"(program p cores=1
sbuf x f32 core=0 partitions=0+128 bytes=0+256
sbuf y f32 core=0 partitions=0+128 bytes=256+256
sbuf offset i32 core=0 partitions=0+1 bytes=512+4
semaphore v
memset gpsimd offset[0+1 @0 1x1] value=24
memset vector x[0+128 @128 8x1] value=1 signal v+1
tensor_copy_dynamic_)";
  for (const char* copy : {"src gpsimd y[0+128 @0 8x1] <- x[0+128 @0 8x1], offset[0+1 @0 1x1]",
                           "dst gpsimd x[0+128 @0 8x1] <- y[0+128 @0 8x1], offset[0+1 @0 1x1]"}) {
    const NeuronCoreProgram early = parse(text + copy + "\n"), late = parse(text + copy + " wait v>=1\n");
    EXPECT_EQ(races(early, chip_named("trn2")).size(), 2U) << copy;  // over x, and over offset
    EXPECT_EQ(races(late, chip_named("trn2")).size(), 1U) << copy;
  }
}

}  // namespace
}  // namespace trellis::sim::core
