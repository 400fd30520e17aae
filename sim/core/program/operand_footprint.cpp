#include "sim/core/program/operand_footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <queue>

namespace trellis::sim::core {
namespace {

constexpr int on_chip_shift = 10, hbm_shift = 18;  // log2 of the bytes of a bucket

double size_of(const View& v) { return static_cast<double>(kernels::size_of(v.type)); }

ByteRange moved_bytes(const View& v, MemorySpace space, std::int64_t value) {
  const ByteRange all = all_bytes(v, space);
  const double by = static_cast<double>(value) * static_cast<double>(v.index_scale);
  return {all.low + by, all.high + by};
}

// Whether the box stays within its rows. Such boxes of one stride overlap only if both their rows and columns do.
bool within_rows(const OperandFootprint& f) { return f.stride == 0 || f.column + f.width <= std::abs(f.stride); }

// Whether any two of these boxes, of one stride and within their rows, overlap. Goes through them by first row, and
// keeps those that reach the current row in order of their columns: the next box can overlap only its neighbours there.
bool any_overlap_in_rows(std::vector<OperandFootprint>& boxes) {
  std::ranges::sort(boxes, {}, &OperandFootprint::row);
  std::map<std::int64_t, std::int64_t> columns;       // of the boxes kept: first column -> end
  using End = std::pair<std::int64_t, std::int64_t>;  // row, first column
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  for (const OperandFootprint& box : boxes) {
    for (; !ends.empty() && ends.top().first <= box.row; ends.pop()) columns.erase(ends.top().second);
    const auto after = columns.lower_bound(box.column);
    if (after != columns.end() && after->first < box.column + box.width) return true;
    if (after != columns.begin() && std::prev(after)->second > box.column) return true;
    columns.emplace_hint(after, box.column, box.column + box.width);
    ends.emplace(box.row + box.rows, box.column);
  }
  return false;
}

}  // namespace

ByteRange row_bytes(const View& v) {
  ByteRange r;
  for (int d = 0; d < v.dims; ++d) {
    const Dim& dim = v.dim[static_cast<std::size_t>(d)];
    const double last = (dim.count - 1.0) * dim.stride;
    (last < 0 ? r.low : r.high) += last;
  }
  return {r.low * size_of(v), (r.high + 1) * size_of(v)};
}

ByteRange all_bytes(const View& v, MemorySpace space) {
  const ByteRange row = row_bytes(v);
  const auto first = static_cast<double>(v.offset);
  const double down = space == MemorySpace::hbm ? (v.rows - 1.0) * static_cast<double>(v.row_stride) : 0;
  return {first + row.low + std::min(down, 0.0), first + row.high + std::max(down, 0.0)};
}

std::optional<View> moved_by(const NeuronCoreProgram& program, View v, std::int64_t value) {
  const CoreBuffer& b = program.buffers[static_cast<std::size_t>(v.buffer)];
  const ByteRange to = moved_bytes(v, b.space, value);
  if (to.low < 0 || to.high > static_cast<double>(b.bytes)) return {};
  v.offset += value * v.index_scale;
  v.index = -1;
  return v;
}

std::string leads_out(const NeuronCoreProgram& program, const View& v, std::int64_t value) {
  const CoreBuffer& b = program.buffers[static_cast<std::size_t>(v.buffer)];
  const ByteRange to = moved_bytes(v, b.space, value);
  return fmt::format("register {} = {} leads to bytes {} to {} of {}, which has {}", v.index, value, to.low,
                     to.high - 1, b.name, b.bytes);
}

OperandFootprint footprint_of(const NeuronCoreProgram& program, const View& v) {
  const CoreBuffer& b = program.buffers[static_cast<std::size_t>(v.buffer)];
  const ByteRange row = row_bytes(v), all = all_bytes(v, b.space);
  OperandFootprint p;
  p.first = static_cast<std::int64_t>(all.low);
  p.last = static_cast<std::int64_t>(all.high);
  std::int64_t start = v.offset + static_cast<std::int64_t>(row.low);  // of the first row
  p.width = static_cast<std::int64_t>(row.high - row.low);
  if (v.index >= 0) {  // anywhere from here on, or anywhere if a register moves it backwards
    p.first = start = v.index_scale < 0 ? 0 : p.first;
    p.last = std::max(b.bytes, start + 1);
    p.width = p.last - start;
  }
  p.rows = v.rows;
  if (b.space == MemorySpace::hbm) {
    p.area = 1 + v.buffer;
    p.shift = hbm_shift;
    p.stride = v.row_stride;
    p.row = v.row_stride != 0 ? start / v.row_stride : 0;
    p.column = v.row_stride != 0 ? start % v.row_stride : start;
    return p;
  }
  p.area = -1 - (b.core * 2 + (b.space == MemorySpace::psum ? 1 : 0));
  p.shift = on_chip_shift;
  p.row = b.partition + v.row;
  p.first += b.offset;
  p.last += b.offset;
  p.column = p.first;
  return p;
}

bool overlap(const OperandFootprint& a, const OperandFootprint& b) {
  if (a.first >= b.last || b.first >= a.last) return false;
  if (a.stride != b.stride || !within_rows(a) || !within_rows(b)) return true;
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.column < b.column + b.width &&
         b.column < a.column + a.width;
}

bool any_overlap(std::vector<OperandFootprint> boxes) {
  std::ranges::sort(boxes, {}, &OperandFootprint::first);
  std::map<std::int64_t, std::vector<OperandFootprint>> in_rows;  // by stride
  std::map<std::int64_t, std::int64_t> ends;                      // by stride: the end of the boxes so far
  std::int64_t past_rows = 0;                                     // the end of those that go past their rows
  for (const OperandFootprint& box : boxes) {
    if (box.first < past_rows) return true;
    const bool within = within_rows(box);
    for (const auto& [stride, end] : ends)
      if ((!within || stride != box.stride) && box.first < end) return true;
    std::int64_t& end = within ? ends[box.stride] : past_rows;
    end = std::max(end, box.last);
    if (within) in_rows[box.stride].push_back(box);
  }
  return std::ranges::any_of(in_rows, [](auto& of_stride) { return any_overlap_in_rows(of_stride.second); });
}

bool covers(const OperandFootprint& a, const OperandFootprint& b) {
  return a.stride == b.stride && a.row <= b.row && a.row + a.rows >= b.row + b.rows && a.column <= b.column &&
         a.column + a.width >= b.column + b.width;
}

}  // namespace trellis::sim::core
