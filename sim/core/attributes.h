// What an instruction is told beside its operands: numbers, and words from fixed vocabularies.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/core/vocabulary.h"

namespace trellis::sim::core {

enum class Key : std::uint8_t {
  op,    // AluOp of the first, or only, arithmetic
  op1,   // of the second
  func,  // Function of an activation
  scale,
  bias,
  value,    // a constant: memset's, a scalar operand's
  value1,   // of the second arithmetic
  reverse,  // 1: operand order reversed in the first arithmetic
  reverse1,
  accumulate,  // 1: add to what PSUM holds
  transpose,   // 1: matmul by identity, bit for bit
  start,
  step,
  rows,  // channel multiplier of iota and affine_select
  compare,
  mode,
  seed,
  tensor,
  first,
  rate,
  count,
  target,  // a register
  source,  // a register
  semaphore,
  axis,
  rounding,
  peer,  // a core
  epsilon,
  queue,
  pitch,   // random bits: elements from one row to the next; a row's elements where it is absent
  index,   // random bits: a register that is added to `first` ...
  stride,  // ... times so many elements
  step1,   // iota and affine_select: of the next outer dimension
  step2,
  step3,
  reduce,  // AluOp of a reduction along the row
  reduce_command,
  tile_row,  // nc_matmul: which part of the array, and how much of it
  tile_column,
  tile_rows,
  tile_columns,
  bounds,    // what an index outside of its table does
  duration,  // in nanoseconds
  negate,
  compare1,
  begin,
  end,
};
inline constexpr int key_count = static_cast<int>(Key::end) + 1;

// What becomes of the numbers that an engine keeps for each partition, its accumulators.
enum class ReduceCommand : std::uint8_t {
  idle,
  reset,
  reduce,        // go on with what they are
  reset_reduce,  // begin with what leaves every number as it is
  load_reduce    // begin with value1
};

enum class Bounds : std::uint8_t { error, skip };

std::string_view name(Key);

// The words that a key's value is one of; empty for a number.
std::span<const std::string_view> words_of(Key);

struct Attribute {
  Key key = Key::op;
  double value = 0;  // or the word's place among words_of(key)
  bool operator==(const Attribute&) const = default;
};

}  // namespace trellis::sim::core
