// Attributes of instructions, besides the operands: numbers, and words from fixed vocabularies.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/core/program/arithmetic_ops.h"

namespace trellis::sim::core {

enum class Key : std::uint8_t {
  op,    // AluOp of the first or only arithmetic step
  op1,   // of the second step
  func,  // ActivationFunction of an activation
  scale,
  bias,
  value,    // a constant: of memset, or a scalar operand
  value1,   // of the second step
  reverse,  // 1: the first step's operands are swapped
  reverse1,
  accumulate,  // 1: add to the contents of PSUM
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
  pitch,   // random bits: elements from one row to the next; default: a row's elements
  index,   // random bits: a register that is added to `first` ...
  stride,  // ... times this many elements
  step1,   // iota and affine_select: of the next outer dimension
  step2,
  step3,
  reduce,  // AluOp of a reduction along the row
  reduce_command,
  tile_row,  // nc_matmul: which part of the array, and how much of it
  tile_column,
  tile_rows,
  tile_columns,
  bounds,    // what to do with an index outside of its table
  duration,  // in nanoseconds
  negate,
  compare1,
  begin,
  end,
};
inline constexpr int key_count = static_cast<int>(Key::end) + 1;

// What to do with an engine's per-partition accumulators.
enum class ReduceCommand : std::uint8_t {
  idle,
  reset,
  reduce,        // continue with their contents
  reset_reduce,  // begin with the neutral element
  load_reduce    // begin with value1
};

enum class OutOfBoundsPolicy : std::uint8_t { error, skip };

std::string_view name(Key);

// The words that a key's value may be; empty if the value is a number.
std::span<const std::string_view> words_of(Key);

struct Attribute {
  Key key = Key::op;
  double value = 0;  // or the index of the word in words_of(key)
  bool operator==(const Attribute&) const = default;
};

}  // namespace trellis::sim::core
