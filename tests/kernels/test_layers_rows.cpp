// Every twin of every kernel over rows against the scalar truth, bit for bit, on data made to hurt.
#include <cstring>

#include "kernels/rows.h"
#include "kernels/softmax.h"
#include "tests/kernels/layers.h"

namespace trellis::kernels {
namespace {

class Table {
 public:
  Table(const RowKernel& kernel, std::size_t rows, std::size_t columns, std::uint64_t seed)
      : kernel_(kernel), rows_(rows), columns_(columns), key_(random_key({.seed = seed})) {
    for (const RowOperand& o : kernel.reads) read_.push_back(made(o));
    for (const RowOperand& o : kernel.writes) written_.push_back(made(o));
  }

  // What the body leaves behind, the last byte of each operand's memory being beyond it.
  std::vector<std::vector<std::byte>> after(RowBody body, const void* settings, std::size_t from) const {
    auto copies = written_;
    std::vector<void*> writes;
    std::vector<const void*> reads;
    for (auto& m : copies) writes.push_back(m.data());
    for (const auto& m : read_) reads.push_back(m.data());
    body({.rows = rows_,
          .columns = columns_,
          .from = from,
          .to = kernel_.by_columns ? columns_ : rows_,
          .writes = writes.data(),
          .reads = reads.data(),
          .settings = settings});
    return copies;
  }

 private:
  std::vector<std::byte> made(const RowOperand& o) {
    const std::size_t n = o.extent == Extent::table ? rows_ * columns_ : o.extent == Extent::row ? rows_ : columns_;
    std::vector<std::byte> memory(n * size_of(o.type) + 1);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t r = random32(key_, count_++);
      if (o.type == DType::i32) {
        const auto label = static_cast<std::int32_t>(r % (columns_ + 2)) - 1;
        const std::int32_t value = label < 0 ? -100 : label;
        std::memcpy(memory.data() + i * 4, &value, 4);
      } else {
        store(o.type, memory.data() + i * size_of(o.type), hostile(r));
      }
    }
    return memory;
  }

  // A row in eight may have NaNs, infinities and very large or small values.
  double hostile(std::uint32_t r) const {
    const double plain = (r >> 8) * 0x1p-21 - 4;
    if (count_ / columns_ % 8 != 3) return plain;
    const double specials[] = {NAN, -NAN, INFINITY, -INFINITY, 1e-40, -0.0, 3e38, -1e20};
    return r % 16 < 8 ? specials[r % 16] : plain * 30;
  }

  const RowKernel& kernel_;
  std::size_t rows_, columns_;
  RandomKey key_;
  std::uint64_t count_ = 0;
  std::vector<std::vector<std::byte>> read_, written_;
};

void compare(const RowKernel& kernel, std::size_t rows, std::size_t columns, const void* settings) {
  const Table table(kernel, rows, columns, rows * 1000 + columns);
  const std::size_t from = columns % 3 == 0 ? (kernel.by_columns ? columns : rows) / 3 : 0;
  const auto expected = table.after(kernel.truth, settings, from);
  for (std::size_t i = 0; i < isa_count; ++i)
    if (cpu().has[i]) {
      ASSERT_EQ(expected, table.after(kernel.twins[i], settings, from))
          << kernel.name << " " << name(static_cast<Isa>(i)) << " rows=" << rows << " columns=" << columns;
    }
}

TEST(RowTwins, EqualTheTruth) {
  EXPECT_EQ(row_kernels().size(), 20u);
  for (const auto& [name, kernel] : row_kernels()) {
    ASSERT_NE(kernel.truth, nullptr) << name;
    for (std::size_t i = 0; i < isa_count; ++i) ASSERT_TRUE(!cpu().has[i] || kernel.twins[i] != nullptr) << name;
    for (std::size_t columns = 1; columns <= 257; columns += columns < 70 || columns > 250 ? 1 : 13)
      compare(kernel, 9 + columns % 8, columns, kernel.settings);
    compare(kernel, 600, 21, kernel.settings);
    compare(kernel, 300, 100, kernel.settings);
    compare(kernel, 0, 21, kernel.settings);
    compare(kernel, 2, 5000, kernel.settings);
  }
}

TEST(RowTwins, EqualTheTruthUnderAMask) {
  for (const auto& [name, kernel] : row_kernels())
    if (name.starts_with("softmax"))
      for (std::size_t columns = 1; columns < 140; columns += 7)
        for (const std::size_t queries : {std::size_t{1}, (columns + 1) / 2, columns}) {
          const SoftmaxSettings settings{0.3F, queries};
          compare(kernel, 3 * queries, columns, &settings);
        }
}

}  // namespace
}  // namespace trellis::kernels
