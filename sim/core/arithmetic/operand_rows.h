// Row-wise access to the operands of one instruction: as floats, as exact integers, or as bits.
#pragma once

#include <vector>

#include "sim/core/arithmetic/alu_rows.h"
#include "sim/core/program/instruction_kind.h"
#include "sim/core/run/core_memory.h"

namespace trellis::sim::core {

// An input, as floats.
class InputRows {
 public:
  InputRows(CoreMemory& memory, const View& view);
  // Valid until the next call. Points into memory if the row is contiguous floats there.
  const float* row(std::int64_t);
  FloatRowOperand operand(std::int64_t r) { return {row(r), spread_}; }
  std::size_t elements() const { return elements_; }

 private:
  CoreMemory& memory_;
  const View& view_;
  std::size_t elements_;
  bool spread_, direct_;
  std::vector<float> buffer_;
};

// A scalar operand: an attribute, or a column with one element a row.
class ScalarOperand {
 public:
  ScalarOperand(CoreMemory&, const View* column, double number);
  float at(std::int64_t row);
  std::int64_t whole(std::int64_t row);  // of integers, exact
  FloatRowOperand operand(std::int64_t row);

 private:
  CoreMemory& memory_;
  const View* column_;
  double exact_;
  float number_;
};

// An output. store() rounds what was written to row() as the attributes say.
class OutputRows {
 public:
  OutputRows(const BoundInstruction&, CoreMemory&, const View&);
  float* row() { return buffer_.data(); }
  void store(std::int64_t row);
  void store(std::int64_t row, const float* from);
  std::size_t elements() const { return elements_; }

 private:
  CoreMemory& memory_;
  const View& view_;
  std::size_t elements_;
  std::uint64_t pitch_;
  kernels::CastOptions rounding_;
  std::uint64_t first_;
  std::vector<float> buffer_;
};

// Integers as bit patterns.
class BitRows {
 public:
  BitRows(CoreMemory&, const View&);
  const std::uint64_t* row(std::int64_t);
  BitRowOperand operand(std::int64_t r) { return {row(r), words_.size() == 1}; }
  void store(std::int64_t row, const std::uint64_t* from);
  int bits() const { return static_cast<int>(size_) * 8; }
  std::size_t elements() const { return words_.size(); }

 private:
  CoreMemory& memory_;
  const View& view_;
  std::size_t size_;
  std::vector<std::byte> bytes_;
  std::vector<std::uint64_t> words_;
};

// Adds to the kind's own attributes those for rounding: round; and for stochastic rounding seed, tensor, step (of
// training), first (the global index of the output's first element), pitch, and index with stride, for loops. The
// random bits are then those that kernels::cast uses for the same elements of an array of which the output is a part.
std::vector<KeyRule> with_rounding(std::vector<KeyRule> own = {});

// Copies row by row, if both sides have the same shape: bit for bit, or cast through floats if the types differ.
void copy_rows(const BoundInstruction&, CoreMemory&, const View& in, const View& out);

// Writes the input, transposed, to the output, bit for bit.
void transpose_rows(const BoundInstruction&, CoreMemory&);

}  // namespace trellis::sim::core
