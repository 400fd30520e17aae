// The operands of one instruction, a row at a time: as floats, as numbers beyond f32, or as bits.
#pragma once

#include <vector>

#include "sim/core/kind.h"
#include "sim/core/kinds/arithmetic.h"
#include "sim/core/memory.h"

namespace trellis::sim::core {

// An input, as floats.
class Source {
 public:
  Source(Memory& memory, const View& view);
  // Valid until the next call; the memory itself where the row lies there as floats.
  const float* row(std::int64_t);
  Term operand(std::int64_t r) { return {row(r), spread_}; }
  std::size_t elements() const { return elements_; }

 private:
  Memory& memory_;
  const View& view_;
  std::size_t elements_;
  bool spread_, direct_;
  std::vector<float> buffer_;
};

// A number that is an attribute, or a column with one element a row.
class Scalar {
 public:
  Scalar(Memory&, const View* column, double number);
  float at(std::int64_t row);
  std::int64_t whole(std::int64_t row);  // of integers, every bit
  Term operand(std::int64_t row);

 private:
  Memory& memory_;
  const View* column_;
  double exact_;
  float number_;
};

// An output: what is written to row() is rounded to its place by store(), as the attributes say.
class Sink {
 public:
  Sink(const Call&, Memory&, const View&);
  float* row() { return buffer_.data(); }
  void store(std::int64_t row);
  void store(std::int64_t row, const float* from);
  std::size_t elements() const { return elements_; }

 private:
  Memory& memory_;
  const View& view_;
  std::size_t elements_;
  std::uint64_t pitch_;
  kernels::CastOptions rounding_;
  std::uint64_t first_;
  std::vector<float> buffer_;
};

// Integers as bit patterns.
class Bits {
 public:
  Bits(Memory&, const View&);
  const std::uint64_t* row(std::int64_t);
  BitTerm operand(std::int64_t r) { return {row(r), words_.size() == 1}; }
  void store(std::int64_t row, const std::uint64_t* from);
  int bits() const { return static_cast<int>(size_) * 8; }
  std::size_t elements() const { return words_.size(); }

 private:
  Memory& memory_;
  const View& view_;
  std::size_t size_;
  std::vector<std::byte> bytes_;
  std::vector<std::uint64_t> words_;
};

// The attributes that say how results are rounded: round, and of stochastic rounding seed, tensor, step (of training),
// first (the global index of the output's first element), pitch, and index with stride, for loops. So the bits are
// those of kernels::cast over a whole array of which the output is a part. These, and the kind's own.
std::vector<KeyRule> with_rounding(std::vector<KeyRule> own = {});

// Row after row, where both sides are cut alike: bit for bit, or cast through floats where the types differ.
void copy_rows(const Call&, Memory&, const View& in, const View& out);

}  // namespace trellis::sim::core
