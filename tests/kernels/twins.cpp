// Every twin of every registered kernel against the scalar truth, bit for bit.
#include <gtest/gtest.h>

#include "kernels/check/kernel_trial.h"

namespace trellis::kernels {
namespace {

// Compares bits, except for kernels with a tolerance, which have tests of their own.
void compare(const Kernel& kernel, std::size_t n, std::size_t offset, std::uint64_t first,
             KernelTrial::Data data = KernelTrial::Data::hostile) {
  const int sources = kernel.many ? 2 + static_cast<int>(n % 4) : static_cast<int>(kernel.reads.size());
  const KernelTrial trial(kernel, n, offset, sources, n * 64 + offset, data);
  const auto expected = trial.after(kernel.truth, first, false);
  for (std::size_t i = 0; i < isa_count; ++i)
    for (const bool streaming : {false, true})
      if (cpu().has[i] && kernel.twins[i] != nullptr) {
        ASSERT_TRUE(expected == trial.after(kernel.twins[i], first, streaming))
            << kernel.name << " " << name(static_cast<Isa>(i)) << " n=" << n << " offset=" << offset
            << " first=" << first << " streaming=" << streaming;
      }
}

bool has_twin(const Kernel& kernel) { return kernel.chosen() != kernel.truth && kernel.tolerance == 0; }

TEST(Twins, EqualTheTruthOverLengths) {
  for (const auto& [name, kernel] : kernels())
    if (has_twin(kernel))
      for (std::size_t n = 0; n <= 257; n += n < 40 || n > 250 ? 1 : 7)
        compare(kernel, n, n * 8 % 64, n * 5 % 64 + (n % 3 == 0 ? (std::uint64_t{1} << 40) : 0));
}

TEST(Twins, EqualTheTruthAtAllAlignments) {
  for (const auto& [name, kernel] : kernels())
    if (has_twin(kernel))
      for (std::size_t offset = 0; offset < 64; ++offset) compare(kernel, 70 + offset % 5 * 31, offset, offset * 11);
}

// Twins have their fastest paths for numbers of middling size.
TEST(Twins, EqualTheTruthOfPlainNumbers) {
  for (const auto& [name, kernel] : kernels())
    if (has_twin(kernel))
      for (std::size_t n : {7, 64, 129, 190, 257}) compare(kernel, n, n * 8 % 64, n * 5, KernelTrial::Data::plain);
}

// Random bits come in blocks of 512 words: 512 elements, or 1024 of bf16. A kernel that reads one array larger than the
// caches works at two places that are 4096 elements apart.
TEST(Twins, EqualTheTruthFromBlockToBlock) {
  for (const auto& [name, kernel] : kernels())
    if (has_twin(kernel) &&
        (name.ends_with("stochastic") || name.find("bf16") != name.npos || name.starts_with("cast.f32")))
      for (std::uint64_t first : {0, 959}) compare(kernel, 8900, first % 2 * 2, first, KernelTrial::Data::plain);
}

TEST(Twins, EqualTheTruthOverWholeParts) {
  for (const auto& [name, kernel] : kernels())
    if (has_twin(kernel) && kernel.sums)
      for (const KernelTrial::Data data : {KernelTrial::Data::plain, KernelTrial::Data::hostile})
        compare(kernel, 33000, 8, 0, data);
}

TEST(Twins, AreThereForEachSetOfInstructions) {
  std::size_t fast = 0;
  for (const auto& [name, kernel] : kernels()) {
    ASSERT_NE(kernel.truth, nullptr) << name << " has a twin and no truth";
    fast += kernel.twins[0] != nullptr;
  }
  EXPECT_GT(fast, 250u);
}

// A body that is wrong in one element of one length must not pass.
TEST(Twins, ComparisonSeesOneWrongBit) {
  const Kernel& kernel = kernel_named("cast.f32.bf16.nearest");
  const KernelTrial trial(kernel, 200, 0, 1, 1);
  const Body wrong = [](const KernelArguments& s) {
    kernel_named("cast.f32.bf16.nearest").truth(s);
    static_cast<unsigned char*>(s.writes[0])[399] ^= 1;
  };
  EXPECT_TRUE(trial.after(kernel.truth, 0, false) != trial.after(wrong, 0, false));
  EXPECT_THROW(kernel_named("cast.f32.bf17.nearest"), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::kernels
