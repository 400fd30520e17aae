// One call of a kernel over rows on hostile data; kernel_trial.h does the same for elementwise kernels.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/check/kernel_trial.h"
#include "kernels/layers/rows.h"

namespace trellis::kernels {

class RowKernelTrial {
 public:
  enum class Data : std::uint8_t { hostile, plain };

  RowKernelTrial(const RowKernel&, std::size_t rows, std::size_t columns, std::size_t offset, std::uint64_t seed,
                 Data = Data::hostile);

  // Runs the body from row (or column) `from` on. Returns what the written operands then hold, with any guard bytes on
  // either side of each.
  std::vector<std::vector<std::byte>> after(RowBody, const void* settings, std::size_t from) const;

  std::byte* read(std::size_t operand) { return read_[operand].start(); }
  std::size_t count(const RowOperandSpec&) const;  // elements

 private:
  GuardedOperand made(const RowOperandSpec&, std::size_t offset);
  std::uint64_t element_bits(DType);
  double value(std::uint32_t random) const;

  const RowKernel& kernel_;
  std::size_t rows_, columns_;
  RandomKey key_;
  Data data_;
  std::uint64_t count_ = 0;
  std::vector<GuardedOperand> read_, written_;
};

// Whether every twin that this CPU can run gives the same bits as the truth, over some shapes and alignments.
bool agrees(const RowKernel&);

}  // namespace trellis::kernels
