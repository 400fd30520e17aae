// Programs as text: what is printed reads back, and what can't be read is named.
#include <gtest/gtest.h>

#include <string>

#include "sim/core/program/assembler.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/run/run.h"

namespace trellis::sim::core {
namespace {

class Ships : public testing::TestWithParam<std::string> {};

TEST_P(Ships, ReadsBackAsItself) {
  const ShippedProgram& program = shipped_named(GetParam());
  Arguments a(program.parameters);
  if (GetParam() == "matmul") {
    a.set("M", "4096");  // two blocks: the second has tiles of the same names
    for (const char* size : {"K", "N"}) a.set(size, "512");
  }
  const ChipSpec chip = chip_named("trn2");
  const NeuronCoreProgram p = program.build(a, chip);
  const std::string text = print(p);
  const NeuronCoreProgram again = parse(text);
  EXPECT_EQ(print(again), text);
  EXPECT_EQ(run(again, chip).time, run(p, chip).time);
}

std::vector<std::string> all_shipped() {
  std::vector<std::string> names;
  for (const auto& [name, program] : shipped()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Programs, Ships, testing::ValuesIn(all_shipped()), [](const auto& of) { return of.param; });

struct Fault {
  std::string line, complaint;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.line; }  // else as bytes, with addresses

class Faults : public testing::TestWithParam<Fault> {};

TEST_P(Faults, AreNamedWithTheirLine) {
  const std::string text =
      "program p cores=1\nsbuf x f32 core=0 partitions=0+128 bytes=0+256\nsemaphore s\n" + GetParam().line + "\n";
  try {
    parse(text);
    FAIL() << "was read: " << GetParam().line;
  } catch (const std::invalid_argument& e) {
    EXPECT_EQ(std::string(e.what()).find("line 4: " + GetParam().complaint), 0U) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lines, Faults,
    testing::Values(Fault{"memset vektor x[0+1 @0 1x1]", "no engine 'vektor'; expected tensor, vector, scalar, gpsimd"},
                    Fault{"memset vector y[0+1 @0 1x1]", "no buffer 'y'"},
                    Fault{"memset vector x[0+1 0 1x1]", "expected '@' at '0 1x1]'"},
                    Fault{"memset vector x[0+0 @0 1x1]", "0 is not within 1 to"},
                    Fault{"memset vector x[0+1 @0 1x1 1x1 1x1 1x1 1x1]", "expected ']' after four dimensions"},
                    Fault{"memset vector x[0+1 @0]", "expected COUNTxSTRIDE"},
                    Fault{"memset vector x[0+1 @0 1x1]:f31", ""},
                    Fault{"memset vector x[0+1 @0 1x1] colour=3", "no attribute 'colour'"},
                    Fault{"memset vector x[0+1 @0 1x1] value=", "expected a number before the end"},
                    Fault{"tensor_reduce vector x[0+1 @0 1x1] <- x[0+1 @0 1x1] op=plus",
                          "op=plus; expected one of add"},
                    Fault{"memset vector x[0+1 @0 1x1] value=1 wait t>=1", "no semaphore 't'"},
                    Fault{"memset vector x[0+1 @0 1x1] value=1 signal s+1 more", "expected the end of the line"},
                    Fault{"memset vector.1 x[0+1 @0 1x1]", "1 is not within 0 to 0"},
                    Fault{"sbuf x f32 core=0 partitions=0+1 bytes=0+4", "expected a name that is not taken"},
                    Fault{"program q cores=1", "expected one line 'program NAME cores=N'"},
                    Fault{"no_such_thing vector", "no instruction 'no_such_thing'"}));

TEST(CoreText, NeedsAProgramLine) {
  EXPECT_THROW(parse(""), std::invalid_argument);
  EXPECT_THROW(parse("# nothing\n"), std::invalid_argument);
  EXPECT_THROW(parse("semaphore s\n"), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::sim::core
