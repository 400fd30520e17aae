// The memory that an operand touches, as a box, to find out which accesses overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/program/program.h"

namespace trellis::sim::core {

// Bytes from `low` up to `high`, as doubles: they hold every address exactly, and large strides and counts don't wrap.
struct ByteRange {
  double low = 0, high = 0;
};

ByteRange row_bytes(const View&);  // of one row, from its first element on
ByteRange all_bytes(const View&,
                    MemorySpace);  // of all rows, from the start of the buffer (on chip: in each partition)

// Moves the view by its register, which has this value. None if a byte of the view is then outside its buffer.
std::optional<View> moved_by(const NeuronCoreProgram&, View, std::int64_t value);
// "register 3 = 16 leads to bytes 4032 to 4287 of out, which has 4096"
std::string leads_out(const NeuronCoreProgram&, const View&, std::int64_t value);

// A box of `rows` rows from `row` on, by `width` bytes from `column` on. In HBM rows are `stride` bytes apart, and
// `first` up to `last` are all bytes that the box spans.
struct OperandFootprint {
  std::int64_t area = 0;  // one memory: SBUF or PSUM of a core, or a buffer in HBM
  int shift = 0;          // log2 of the bytes of a bucket there
  std::int64_t first = 0, last = 0;
  std::int64_t row = 0, rows = 0;
  std::int64_t stride = 0, column = 0, width = 0;

  std::int64_t first_bucket() const { return first >> shift; }
  std::int64_t last_bucket() const { return (last - 1) >> shift; }
};

OperandFootprint footprint_of(const NeuronCoreProgram&, const View&);
// Two boxes of different strides, or that go past the ends of their rows, count as overlapping if their spans do.
bool overlap(const OperandFootprint&, const OperandFootprint&);
bool any_overlap(std::vector<OperandFootprint>);  // whether any two boxes of one memory overlap
bool covers(const OperandFootprint&, const OperandFootprint&);

}  // namespace trellis::sim::core
