#include "sim/cluster/operation/operation_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/hardware/chip/chip.h"
#include "tests/why.h"

namespace trellis::sim {
namespace {

EngineRates rates_of(std::string_view chip) { return EngineRates(chip_named(chip).figures(), 0, std::string(chip)); }

OperationShape product(std::uint64_t rows, std::uint64_t columns, std::uint64_t inner) {
  return {.kind = "product", .rows = rows, .columns = columns, .inner = inner};
}

TEST(Operation, AFullTileTakesItsRowsAndTheExposedLoad) {
  const OperationTime t = operation_time(product(512, 128, 128), rates_of("trn1"));
  EXPECT_NEAR(t.engines.tensor, (512 + 83.6) / 2.8e9, 1e-12);
  EXPECT_NEAR(t.engines.scalar, 512 * 128 / (128 * 1.4e9), 1e-12);
  EXPECT_EQ(t.engines.flops, 2.0 * 512 * 128 * 128);
  EXPECT_EQ(t.engines.bytes, 2.0 * (512 * 128 + 128 * 128 + 512 * 128));
}

TEST(Operation, MemoryIsTheDmaEnginesWhereHbmHasMore) {
  EXPECT_NEAR(rates_of("trn1").memory_rate(), 16 * 17e9, 1);
  EXPECT_NEAR(rates_of("trn2").memory_rate(), 2 * std::min(2.9e12 / 8, 16 * 23e9), 1);  // a logical core is two
}

TEST(Operation, ShortRowsTakeAsLongAsFullOnes) {
  const EngineRates e = rates_of("trn1");
  const auto memory = [&](std::uint64_t columns) {
    return operation_time({.kind = "copy", .rows = 4096, .columns = columns}, e).engines.memory;
  };
  EXPECT_NEAR(memory(64), memory(512), 1e-12);
  EXPECT_NEAR(memory(8192), 2 * memory(4096), 1e-12);
}

TEST(Operation, WhatFitsIntoSbufTakesTurnsAndWhatDoesNotOverlaps) {
  const EngineRates e = rates_of("trn1");
  const OperationTime small = operation_time({.kind = "add", .rows = 128, .columns = 4096}, e);
  EXPECT_EQ(small.overlap, 0);
  EXPECT_NEAR(small.total, small.engines.vector + small.engines.memory, 1e-12);
  const OperationTime large = operation_time({.kind = "add", .rows = 65536, .columns = 4096}, e);
  EXPECT_GT(large.overlap, 0.9);
  EXPECT_LT(large.total, large.engines.vector + large.engines.memory);
  EXPECT_GT(large.total, large.engines.memory);
}

TEST(Operation, FlashLeavesScoresInSbufAndMaskedPairsOut) {
  OperationShape s{.kind = "attention", .rows = 4096, .columns = 4096, .inner = 128, .batch = 4, .causal = true};
  const EngineRates e = rates_of("trn1");
  const OperationTime spilled = operation_time(s, e);
  s.flash = true;
  const OperationTime flash = operation_time(s, e);
  EXPECT_NEAR(flash.engines.tensor, spilled.engines.tensor / 2, 1e-9);
  EXPECT_NEAR(flash.engines.vector, spilled.engines.vector / 4, 1e-9);
  EXPECT_NEAR(spilled.engines.bytes - flash.engines.bytes, 2.0 * 4 * 4096 * 4096 * 2, 1);
}

TEST(Operation, MxIsTwiceAsFastAsOther8BitsWhereTheChipHasIt) {
  const auto of_type = [](OperationShape s, const char* type) { return s.type = type, s.result = "f32", s; };
  const OperationShape plain = product(4096, 4096, 4096);
  const OperationTime f8 = operation_time(of_type(plain, "f8e4m3fn"), rates_of("ideal"));
  for (const char* type : {"mxfp8_e4m3", "mxfp8_e5m2", "mxfp4_e2m1"}) {
    const OperationTime mx = operation_time(of_type(plain, type), rates_of("ideal"));
    EXPECT_NEAR(mx.engines.flops / mx.engines.tensor, 2 * 315e12, 1e12) << type;  // a logical core is two
    EXPECT_NEAR(mx.engines.tensor, f8.engines.tensor / 2, 1e-12) << type;
  }
  EXPECT_EQ(operation_time(of_type(plain, "mxfp8_e4m3"), rates_of("ideal")).engines.bytes, f8.engines.bytes);
  EXPECT_EQ(f8.engines.bytes - operation_time(of_type(plain, "mxfp4_e2m1"), rates_of("ideal")).engines.bytes,
            4096.0 * 4096);
}

TEST(Operation, VectorRoundsToMxByItsOwnInstruction) {
  const auto vector = [](const char* from, const char* to) {
    return operation_time({.kind = "cast", .rows = 128, .columns = 4096, .type = from, .result = to}, rates_of("trn3"))
        .engines.vector;
  };
  EXPECT_NEAR(vector("bf16", "mxfp8_e5m2"), 4096 * 0.25 / 1.2e9 / 2, 1e-12);
  EXPECT_NEAR(vector("f32", "mxfp8_e5m2"), vector("f32", "bf16") + vector("bf16", "mxfp8_e5m2"), 1e-12);
}

TEST(Operation, RefusesMxOfAChipWithoutIt) {
  for (const char* chip : {"trn1", "trn2"}) {
    const EngineRates e = rates_of(chip);
    const std::string said =
        fmt::format("mxfp8_e4m3: {} has no MX (tensor.row.mx is 0): expected a chip with it, as trn3, or fp8", chip);
    EXPECT_EQ(why([&] { operation_time({.kind = "product", .type = "mxfp8_e4m3", .result = "f32"}, e); }), said);
    EXPECT_EQ(why([&] { operation_time({.kind = "cast", .result = "mxfp8_e4m3"}, e); }), said);
  }
}

TEST(Operation, EveryKindHasATimeOnEveryChip) {
  ASSERT_GT(operation_kinds().entries().size(), 20U);
  for (const std::string& chip : chip_names())
    for (const auto& [name, kind] : operation_kinds().entries()) {
      OperationShape s{.kind = name, .rows = 256, .columns = 512, .inner = 128};
      const double once = operation_time(s, rates_of(chip)).total;
      EXPECT_EQ(once > 0, name != "bias") << chip << ' ' << name;
      s.type = "f32";
      EXPECT_GE(operation_time(s, rates_of(chip)).total, once * 0.999) << chip << ' ' << name;
    }
}

// Where heads share their keys, fewer bytes are read; nothing else changes.
TEST(Operation, HeadsThatShareKeysTakeNoLonger) {
  for (const char* chip : {"trn1", "trn2"})
    for (const char* kind : {"attention", "attention_gradient"})
      for (const bool flash : {false, true})
        for (const std::uint64_t length : {512, 2048, 8192}) {
          OperationShape s{.kind = kind, .rows = length, .columns = length, .inner = 128, .batch = 32, .flash = flash};
          const EngineRates e = rates_of(chip);
          double before = operation_time(s, e).total;
          for (s.shared = 2; s.shared <= 32; s.shared *= 2) {
            const double took = operation_time(s, e).total;
            EXPECT_LE(took, before) << chip << " " << kind << " " << length << " shared " << s.shared;
            before = took;
          }
        }
}

TEST(Operation, RefusesWhatItDoesNotKnow) {
  const EngineRates e = rates_of("trn1");
  EXPECT_NE(why([&] { operation_time({.kind = "prodct"}, e); }).find("no kind of operation is called 'prodct'"),
            std::string::npos);
  EXPECT_EQ(why([&] { operation_time({.kind = "add", .rows = 0}, e); }), "add: rows is 0: expected at least 1");
  const std::string unknown = why([&] { operation_time({.kind = "add", .type = "bf17"}, e); });
  EXPECT_TRUE(unknown.starts_with("no element type is called 'bf17'; known are f64, ")) << unknown;
  EXPECT_TRUE(unknown.ends_with(", mxfp8_e4m3, mxfp8_e5m2, mxfp4_e2m1")) << unknown;
}

TEST(Operation, RefusesFiguresWithWhichNothingEnds) {
  for (const char* key : {"tensor.clock", "vector.clock", "hbm.rate", "dma.engine.rate", "sbuf.partition"}) {
    Figures figures = chip_named("trn1").figures();
    figures.set(key, 0.0);
    EXPECT_EQ(why([&] { EngineRates{figures}; }), std::string(key) + " is 0: expected more than 0");
  }
}

}  // namespace
}  // namespace trellis::sim
