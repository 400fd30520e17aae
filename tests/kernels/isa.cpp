// Which twins run: the best that the CPU has, or what TRELLIS_ISA asks for.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "kernels/dispatch/cpu.h"

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
