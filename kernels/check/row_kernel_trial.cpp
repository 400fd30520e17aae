#include "kernels/check/row_kernel_trial.h"

#include <cmath>
#include <cstring>

#include "kernels/types/convert.h"

namespace trellis::kernels {

RowKernelTrial::RowKernelTrial(const RowKernel& kernel, std::size_t rows, std::size_t columns, std::size_t offset,
                               std::uint64_t seed, Data data)
    : kernel_(kernel), rows_(rows), columns_(columns), key_(random_key({.seed = seed})), data_(data) {
  for (const RowOperandSpec& o : kernel.reads) read_.push_back(made(o, offset += 5));
  for (const RowOperandSpec& o : kernel.writes) written_.push_back(made(o, offset += 3));
}

std::vector<std::vector<std::byte>> RowKernelTrial::after(RowBody body, const void* settings, std::size_t from) const {
  std::vector<GuardedOperand> copies = written_;
  std::vector<void*> writes;
  std::vector<const void*> reads;
  for (const GuardedOperand& m : copies) writes.push_back(m.start());
  for (const GuardedOperand& m : read_) reads.push_back(m.start());
  body({.rows = rows_,
        .columns = columns_,
        .from = from,
        .to = kernel_.by_columns ? columns_ : rows_,
        .writes = writes.data(),
        .reads = reads.data(),
        .settings = settings});
  std::vector<std::vector<std::byte>> all;
  for (const GuardedOperand& m : copies) all.push_back(m.all());
  return all;
}

std::size_t RowKernelTrial::count(const RowOperandSpec& o) const {
  return o.extent == OperandShape::table ? rows_ * columns_ : o.extent == OperandShape::row ? rows_ : columns_;
}

GuardedOperand RowKernelTrial::made(const RowOperandSpec& o, std::size_t offset) {
  const std::size_t n = count(o);
  // Labels are read as int32_t, so they must be aligned to 4 bytes.
  GuardedOperand m(o.type == DType::i32 ? offset / 4 * 4 : offset, n * size_of(o.type));
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = element_bits(o.type);
    std::memcpy(m.start() + i * size_of(o.type), &bits, size_of(o.type));
  }
  return m;
}

std::uint64_t RowKernelTrial::element_bits(DType type) {
  const std::uint32_t random = random32(key_, count_++);
  std::uint64_t bits = 0;
  if (type != DType::i32) {
    store(type, &bits, value(random));
  } else {
    // A label: a class, the number after the last class, or -100, which is ignored.
    const auto label = static_cast<std::int32_t>(random % (columns_ + 2)) - 1;
    const std::int32_t value = label < 0 ? -100 : label;
    std::memcpy(&bits, &value, sizeof value);
  }
  return bits;
}

// In hostile data, one row in eight may have NaNs, infinities and very large or small values.
double RowKernelTrial::value(std::uint32_t random) const {
  const double plain = (random >> 8) * 0x1p-21 - 4;
  if (data_ == Data::plain || count_ / columns_ % 8 != 3) return plain;
  const double specials[] = {NAN, -NAN, INFINITY, -INFINITY, 1e-40, -0.0, 3e38, -1e20};
  return random % 16 < 8 ? specials[random % 16] : plain * 30;
}

bool agrees(const RowKernel& kernel) {
  for (const std::size_t columns : {1, 31, 32, 100, 257}) {
    const RowKernelTrial trial(kernel, 17, columns, columns * 8, columns);
    const auto expected = trial.after(kernel.truth, kernel.settings, 0);
    for (std::size_t i = 0; i < isa_count; ++i)
      if (cpu().has[i] && kernel.twins[i] != nullptr && trial.after(kernel.twins[i], kernel.settings, 0) != expected)
        return false;
  }
  return true;
}

}  // namespace trellis::kernels
