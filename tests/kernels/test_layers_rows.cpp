// Compares every twin (vectorised body) of every row kernel bit for bit with its truth (scalar reference), on hostile
// data: many NaNs, infinities, subnormals and huge values.
#include <gtest/gtest.h>

#include "kernels/check/row_kernel_trial.h"
#include "kernels/layers/softmax.h"

namespace trellis::kernels {
namespace {

// Whether any kernel has a twin for this instruction set: a build with a sanitizer has twins for one set only.
bool compiled_for(std::size_t isa) {
  for (const auto& [name, kernel] : row_kernels())
    if (kernel.twins[isa] != nullptr) return true;
  return isa == 0;
}

void compare(const RowKernel& kernel, std::size_t rows, std::size_t columns, std::size_t offset, const void* settings) {
  const RowKernelTrial trial(kernel, rows, columns, offset, rows * 1000 + columns);
  const std::size_t from = columns % 3 == 0 ? (kernel.by_columns ? columns : rows) / 3 : 0;
  const auto expected = trial.after(kernel.truth, settings, from);
  for (std::size_t i = 0; i < isa_count; ++i)
    if (cpu().has[i] && kernel.twins[i] != nullptr) {
      ASSERT_TRUE(expected == trial.after(kernel.twins[i], settings, from))
          << kernel.name << " " << name(static_cast<Isa>(i)) << " rows=" << rows << " columns=" << columns
          << " offset=" << offset;
    }
}

TEST(RowTwins, EqualTheTruth) {
  EXPECT_EQ(row_kernels().size(), 20u);
  for (const auto& [name, kernel] : row_kernels()) {
    ASSERT_NE(kernel.truth, nullptr) << name;
    for (std::size_t i = 0; i < isa_count; ++i)
      ASSERT_TRUE(!cpu().has[i] || kernel.twins[i] != nullptr || !compiled_for(i)) << name;
    for (std::size_t columns = 1; columns <= 257; columns += columns < 70 || columns > 250 ? 1 : 13)
      compare(kernel, 9 + columns % 8, columns, columns % 4 * 16, kernel.settings);
    compare(kernel, 600, 21, 0, kernel.settings);
    compare(kernel, 300, 100, 0, kernel.settings);
    compare(kernel, 0, 21, 0, kernel.settings);
    compare(kernel, 2, 5000, 0, kernel.settings);
  }
}

TEST(RowTwins, EqualTheTruthAtAllAlignments) {
  for (const auto& [name, kernel] : row_kernels())
    for (std::size_t offset = 0; offset < 64; ++offset)
      compare(kernel, 5, 60 + offset % 7 * 17, offset, kernel.settings);
}

TEST(RowTwins, EqualTheTruthUnderAMask) {
  for (const auto& [name, kernel] : row_kernels())
    if (name.starts_with("softmax"))
      for (std::size_t columns = 1; columns < 140; columns += 7)
        for (const std::size_t queries : {std::size_t{1}, (columns + 1) / 2, columns}) {
          const SoftmaxSettings settings{0.3F, queries};
          compare(kernel, 3 * queries, columns, columns % 64, &settings);
        }
}

// A body that is wrong in one bit of one element must not pass.
TEST(RowTwins, ComparisonSeesOneWrongBit) {
  RowKernel kernel = row_kernels().at("softmax.f32");
  const RowKernelTrial trial(kernel, 3, 20, 4, 1);
  const auto truth = trial.after(kernel.truth, kernel.settings, 0);
  EXPECT_TRUE(agrees(kernel));
  kernel.twins[0] = [](const RowKernelArguments& s) {
    row_kernels().at("softmax.f32").truth(s);
    if (s.to > s.from) static_cast<unsigned char*>(s.writes[0])[s.to * s.columns * sizeof(float) - 1] ^= 1;
  };
  EXPECT_TRUE(truth != trial.after(kernel.twins[0], kernel.settings, 0));
  EXPECT_FALSE(agrees(kernel));
}

}  // namespace
}  // namespace trellis::kernels
