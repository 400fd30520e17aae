// A NaN or an infinity in any place of any operand of any kernel gives what the scalar truth gives, and changes nothing
// else.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/check/row_kernel_trial.h"
#include "kernels/types/convert.h"

namespace trellis::kernels {
namespace {

constexpr std::size_t n = 37;
constexpr double specials[] = {NAN, INFINITY, -INFINITY};

using Memory = std::vector<std::byte>;

// Numbers from 1 to 2, which give no NaN or infinity by themselves.
Memory plain(DType type, std::size_t count, std::uint64_t seed) {
  Memory m(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) store(type, &m[i * size_of(type)], 1 + random32({seed, 3}, i) * 0x1p-32);
  return m;
}

bool is_nan(DType type, const Memory& m, std::size_t i) {
  return is_float(type) && std::isnan(load(type, &m[i * size_of(type)]));
}

struct Operands {
  const Kernel& kernel;
  std::vector<DType> read_types;
  std::vector<Memory> reads, writes;

  explicit Operands(const Kernel& k) : kernel(k), read_types(k.reads) {
    if (k.many) read_types.resize(3, k.reads.back());
    for (const DType type : read_types) reads.push_back(plain(type, n, reads.size()));
    for (const DType type : k.writes) writes.push_back(plain(type, k.sums ? 1 : n, 10 + writes.size()));
  }
  std::vector<Memory> after(Body body) const {
    std::vector<Memory> copies = writes;
    std::vector<void*> to;
    std::vector<const void*> from;
    for (Memory& m : copies) to.push_back(m.data());
    for (const Memory& m : reads) from.push_back(m.data());
    body({.n = n,
          .writes = to.data(),
          .reads = from.data(),
          .sources = static_cast<int>(from.size()),
          .first = 5,
          .key = {1, 2},
          .settings = kernel.settings});
    return copies;
  }
};

// Puts one special value after the other into each place of `m`, an operand of `o`.
void try_places(Operands& o, Memory& m, DType type, const std::vector<Memory>& clean) {
  const std::size_t size = size_of(type);
  for (std::size_t place = 0; place < n; ++place)
    for (const double special : specials) {
      std::byte before[8];
      std::memcpy(before, &m[place * size], size);
      store(type, &m[place * size], special);
      const auto found = o.after(o.kernel.chosen());
      ASSERT_TRUE(found == o.after(o.kernel.truth)) << o.kernel.name << " " << special << " at " << place;
      std::memcpy(&m[place * size], before, size);
      bool nan = false;
      for (std::size_t w = 0; w < found.size(); ++w) {
        const DType written = o.kernel.writes[w];
        for (std::size_t i = 0; i < found[w].size() / size_of(written); ++i) {
          if (i == place || o.kernel.sums)
            nan = nan || is_nan(written, found[w], i) || !is_float(written);
          else
            ASSERT_EQ(0,
                      std::memcmp(&found[w][i * size_of(written)], &clean[w][i * size_of(written)], size_of(written)))
                << o.kernel.name << " " << special << " at " << place << " shows at " << i;
        }
      }
      ASSERT_TRUE(nan || !std::isnan(special)) << o.kernel.name << " loses the NaN at " << place;
    }
}

TEST(Places, ASpecialElementShowsInItsOwnPlaceAlone) {
  for (const auto& [name, kernel] : kernels()) {
    Operands o(kernel);
    const auto clean = o.after(kernel.truth);
    for (std::size_t r = 0; r < o.reads.size(); ++r)
      if (is_float(o.read_types[r])) try_places(o, o.reads[r], o.read_types[r], clean);
    for (std::size_t w = 0; w < o.writes.size(); ++w)
      if (kernel.updates_operand(w) && is_float(kernel.writes[w]) && !kernel.sums)
        try_places(o, o.writes[w], kernel.writes[w], clean);
  }
}

// Tries every column of a row and every row of a column of a table: other rows (or columns) keep their bits.
TEST(Places, ASpecialElementOfATableStaysInItsRowOrColumn) {
  constexpr std::size_t rows = 5, columns = 35;
  for (const auto& [name, kernel] : row_kernels())
    for (std::size_t r = 0; r < kernel.reads.size(); ++r) {
      if (kernel.reads[r].extent != OperandShape::table) continue;
      const DType type = kernel.reads[r].type;
      RowKernelTrial clean(kernel, rows, columns, 3, 1, RowKernelTrial::Data::plain);
      const auto before = clean.after(kernel.truth, kernel.settings, 0);
      for (std::size_t place = 0; place < rows * columns; ++place)
        for (const double special : specials) {
          RowKernelTrial trial(kernel, rows, columns, 3, 1, RowKernelTrial::Data::plain);
          store(type, trial.read(r) + place * size_of(type), special);
          const auto after = trial.after(kernel.chosen(), kernel.settings, 0);
          ASSERT_TRUE(after == trial.after(kernel.truth, kernel.settings, 0)) << name << " " << special << " " << place;
          for (std::size_t w = 0; w < after.size(); ++w) {
            const RowOperandSpec& written = kernel.writes[w];
            const std::size_t size = size_of(written.type), skip = (after[w].size() - trial.count(written) * size) / 2;
            for (std::size_t i = 0; i < trial.count(written); ++i) {
              const std::size_t row = written.extent == OperandShape::table ? i / columns : i;
              const std::size_t column = written.extent == OperandShape::table ? i % columns : i;
              if (kernel.by_columns ? column == place % columns : row == place / columns) continue;
              ASSERT_EQ(0, std::memcmp(&after[w][skip + i * size], &before[w][skip + i * size], size))
                  << name << " " << special << " at " << place << " shows at " << i;
            }
          }
        }
    }
}

}  // namespace
}  // namespace trellis::kernels
