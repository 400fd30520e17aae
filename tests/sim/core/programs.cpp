// Every program that ships, at small and odd sizes: right on every generation, free of races, and with the same time
// when nothing is computed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

#include "sim/core/check/race_detector.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/run/run.h"
#include "tests/why.h"

namespace trellis::sim::core {
namespace {

const std::vector<std::string> cases = {
    "matmul M=256 K=256 N=1024",
    "reduce n=100003 sources=3",
    "reduce n=70 sources=1",
    "reduce n=5003 sources=35 by=dma",
    "reduce n=5003 sources=4 by=dma type=f32",
    "cast n=600003",
    "cast n=600003 rounding=stochastic",
    "adamw n=200007",
    "adamw n=1003 parameters=f32",
    "rms_norm rows=300 columns=1000 type=f32",
    "rms_norm rows=130 columns=77 residual=yes",
    "layer_norm rows=300 columns=1000 stage=v1",
    "layer_norm rows=300 columns=1000 stage=v2",
    "layer_norm rows=130 columns=77 stage=v2 type=bf16",
    "softmax rows=300 columns=999",
    "softmax rows=130 columns=77 type=f32 scale=-0.7",
    "transpose rows=700 columns=300",
    "transpose rows=700 columns=1100 type=f32",
    "transpose rows=700 columns=300 type=f32 by=dma",
    "transpose rows=700 columns=300 by=vector",
    "swiglu n=300001",
    "swiglu n=300001 type=f32 up=no",
    "rope heads=3 positions=512 run=2 size=64",
    "rope heads=3 positions=512 run=4 tables=reloaded",
    "mamba seq_len=100 channels=256 state=4 stage=v1 batch=2",
    "mamba seq_len=700 channels=256 state=3 stage=v2",
    "mamba seq_len=1100 channels=256 state=3 stage=v3 batch=2",
    "mamba seq_len=4096 channels=256 state=2 stage=v2",
    "mamba seq_len=8192 channels=128 state=2 stage=v2",
    "flash_attention seq_len=256 tile=128",
    "flash_attention seq_len=640 type=f32 causal=yes tile=256 heads=3",
    "flash_attention seq_len=128 heads=6",
    "flash_attention_backward seq_len=256",
    "flash_attention_backward seq_len=640 type=f32 causal=yes heads=2",
};

struct Case {
  const ShippedProgram& program;
  Arguments arguments;

  explicit Case(const std::string& text)
      : program(shipped_named(text.substr(0, text.find(' ')))), arguments(program.parameters) {
    std::istringstream words(text.substr(text.find(' ')));
    for (std::string word; words >> word;)
      arguments.set(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
  }
};

class CorePrograms : public testing::TestWithParam<std::string> {};

TEST_P(CorePrograms, AreRightWithoutRacesAndAsLongWhenOnlyTimed) {
  const Case c(GetParam());
  for (const std::string chip_name : {"trn1", "trn2", "trn3", "ideal"}) {
    SCOPED_TRACE(chip_name);
    const ChipSpec chip = chip_named(chip_name);
    const NeuronCoreProgram program = c.program.build(c.arguments, chip);
    CoreMemory memory(program, chip);
    c.program.fill(c.arguments, memory, 1);
    const RunTotals computed = run(program, chip, {.memory = &memory}), timed = run(program, chip);
    EXPECT_EQ(computed.time, timed.time);
    EXPECT_GT(timed.time, 0);
    for (const Comparison& held : c.program.compare(c.arguments, memory)) {
      EXPECT_GT(held.elements, 0U) << held.what;
      EXPECT_EQ(held.wrong, 0U) << held.what << ": " << held.worst << " off where " << held.bound << " may be";
    }
    EXPECT_EQ(races(program, chip), std::vector<std::string>{});
  }
}

TEST_P(CorePrograms, AreHeldToEveryOutput) {
  const Case c(GetParam());
  const ChipSpec chip = chip_named("trn2");
  const NeuronCoreProgram program = c.program.build(c.arguments, chip);
  CoreMemory memory(program, chip);
  c.program.fill(c.arguments, memory, 1);
  run(program, chip, {.memory = &memory});
  for (const CoreBuffer& b : program.buffers) {
    if (b.role != BufferRole::output) continue;
    // Damages the output: flips most bits of the last element's exponent, in its top byte.
    std::byte& last = memory.hbm(b.name).back();
    last ^= std::byte{0x7F};
    std::uint64_t wrong = 0;
    for (const Comparison& held : c.program.compare(c.arguments, memory)) wrong += held.wrong;
    EXPECT_GT(wrong, 0U) << b.name;
    last ^= std::byte{0x7F};
  }
}

INSTANTIATE_TEST_SUITE_P(ShippedProgram, CorePrograms, testing::ValuesIn(cases), [](const auto& one) {
  std::string name = one.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

TEST(CoreProgramsRegistry, HasACaseForEveryProgram) {
  std::set<std::string> with_case;
  for (const std::string& text : cases) with_case.insert(text.substr(0, text.find(' ')));
  for (const auto& [name, program] : shipped()) EXPECT_TRUE(with_case.contains(name)) << name;
}

TEST(CoreProgramsRegistry, RefusesSizesThatAProgramIsNotMadeFor) {
  const ChipSpec chip = chip_named("trn1");
  for (const std::string text : {"matmul M=100", "reduce sources=65", "rope size=63", "rope positions=100",
                                 "mamba channels=100", "flash_attention seq_len=100", "flash_attention tile=2048",
                                 "flash_attention_backward seq_len=1", "softmax columns=1000000"}) {
    const Case c(text);
    EXPECT_THROW(c.program.build(c.arguments, chip), std::invalid_argument) << text;
  }
}

// A size is used as given, or refused by name. None is narrowed or becomes negative on the way.
TEST(CoreProgramsRegistry, RefusesSizesBeyondWhatItCountsWith) {
  const ChipSpec chip = chip_named("trn2");
  for (const auto& [name, program] : shipped())
    for (const ProgramParameter& p : program.parameters) {
      if (!p.words.empty() || p.value != std::floor(p.value) || p.name == "scale") continue;
      for (const char* size : {"2147483648", "4294971392", "1000000000000"}) {
        Arguments arguments(program.parameters);
        arguments.set(p.name, size);
        EXPECT_EQ(why([&, &of = program] { of.build(arguments, chip); }),
                  fmt::format("{}={}; expected a whole number from 1 to 2147483647", p.name, size))
            << name;
      }
      Arguments arguments(program.parameters);
      arguments.set(p.name, "2147483392");  // below 2^31, and a multiple of what programs want
      EXPECT_EQ(why([&, &of = program] { of.build(arguments, chip); }).find('-'), std::string::npos)
          << name << " " << p.name;
    }
}

// With so little memory, the sums leave no room for a tile of a factor.
TEST(CoreProgramsRegistry, RefusesAChipWithTooLittleMemory) {
  Figures figures = chip_named("trn2").figures();
  figures.set("sbuf.partition", "76 KiB");
  const ChipSpec chip("trn2", figures);
  const Case c("matmul stage=fully_optimised");
  const std::string fault = why([&] { c.program.build(c.arguments, chip); });
  EXPECT_NE(fault.find("bytes a partition left in sbuf"), fault.npos) << fault;
}

TEST(CoreProgramsRegistry, RefusesWhatNoMemoryOfTheChipHolds) {
  const ChipSpec chip = chip_named("trn2");
  for (const std::string text :
       {"matmul M=268435456", "softmax rows=100000000", "rope heads=1000000 positions=1000064 run=1 size=1000000",
        "mamba batch=100000 seq_len=100000 channels=1280000", "flash_attention seq_len=2147483392"}) {
    const Case c(text);
    const std::string fault = why([&] { c.program.build(c.arguments, chip); });
    EXPECT_TRUE(fault.find("HBM") != fault.npos || fault.find("expected") != fault.npos) << text << ": " << fault;
  }
}

}  // namespace
}  // namespace trellis::sim::core
