// One call of a kernel over rows on data made to hurt, as trial.h has it for the elementwise ones.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/check/trial.h"
#include "kernels/layers/rows.h"

namespace trellis::kernels {

class RowTrial {
 public:
  enum class Data : std::uint8_t { hostile, plain };

  RowTrial(const RowKernel&, std::size_t rows, std::size_t columns, std::size_t offset, std::uint64_t seed,
           Data = Data::hostile);

  // What the body leaves in the written operands and right around them, having worked from row (or column) `from` on.
  std::vector<std::vector<std::byte>> after(RowBody, const void* settings, std::size_t from) const;

  std::byte* read(std::size_t operand) { return read_[operand].start(); }
  std::size_t count(const RowOperand&) const;  // elements

 private:
  TrialMemory made(const RowOperand&, std::size_t offset);
  std::uint64_t element_bits(DType);
  double value(std::uint32_t random) const;

  const RowKernel& kernel_;
  std::size_t rows_, columns_;
  RandomKey key_;
  Data data_;
  std::uint64_t count_ = 0;
  std::vector<TrialMemory> read_, written_;
};

// Whether every twin that this CPU can run leaves the truth's bits, over some shapes and alignments.
bool agrees(const RowKernel&);

}  // namespace trellis::kernels
