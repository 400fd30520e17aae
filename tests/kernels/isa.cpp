// Which twins run: the best that the CPU has, or what TRELLIS_ISA asks for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "kernels/dispatch/cpu.h"
#include "text/read_file.h"

namespace trellis::kernels {
namespace {

constexpr std::array<bool, isa_count> some = {true, true, false, false}, all = {true, true, true, true};

TEST(Isa, IsTheBestThereIs) {
  EXPECT_EQ(isa_for(some, ""), Isa::avx2);
  EXPECT_EQ(isa_for(all, ""), Isa::avx512bf16);
  EXPECT_EQ(isa_for({true}, ""), Isa::vec128);
}

TEST(Isa, IsTheOneThatIsWanted) {
  for (std::size_t i = 0; i < isa_count; ++i) EXPECT_EQ(isa_for(all, name(static_cast<Isa>(i))), static_cast<Isa>(i));
}

TEST(Isa, IsNamedAsTheDocumentSays) {
  const std::string text = text::read_file(TRELLIS_SOURCE_DIR "/docs/environment.md");
  const std::size_t row = text.find("| `TRELLIS_ISA` |");
  ASSERT_NE(row, std::string::npos);
  std::string names = "used: ";
  for (std::size_t i = 0; i < isa_count; ++i)
    names += fmt::format("{}`{}`", i > 0 ? ", " : "", name(static_cast<Isa>(i)));
  EXPECT_NE(text.substr(row, text.find('\n', row) - row).find(names + " ["), std::string::npos) << names;
}

TEST(Isa, RefusesWhatTheCpuLacks) {
  for (const char* wanted : {"avx512", "sse9", "AVX2", "avx2 "}) try {
      isa_for(some, wanted);
      ADD_FAILURE() << wanted << " was taken";
    } catch (const std::invalid_argument& e) {
      EXPECT_EQ(std::string(e.what()), std::string("TRELLIS_ISA=") + wanted +
                                           ": expected a set of instructions that this CPU has: vec128, avx2");
    }
}

}  // namespace
}  // namespace trellis::kernels
