#include "sim/core/program/footprint.h"

#include <algorithm>

namespace trellis::sim::core {
namespace {

constexpr int on_chip_shift = 10, hbm_shift = 18;  // log2 of the bytes of a bucket

// Bytes of a row from the first element touched to the end of the last.
std::int64_t width_of(const View& v) {
  std::int64_t last = 0;
  for (int d = 0; d < v.dims; ++d) {
    const Dim& dim = v.dim[static_cast<std::size_t>(d)];
    last += std::int64_t{dim.count - 1} * std::max(0, dim.stride);
  }
  return (last + 1) * static_cast<std::int64_t>(kernels::size_of(v.type));
}

}  // namespace

Footprint footprint_of(const EngineProgram& program, const View& v) {
  const CoreBuffer& b = program.buffers[static_cast<std::size_t>(v.buffer)];
  Footprint p;
  p.width = width_of(v);
  if (v.index >= 0) p.width = std::max<std::int64_t>(b.bytes - v.offset, 1);  // anywhere from here on
  if (b.space == Space::hbm) {
    p.area = 1 + v.buffer;
    p.shift = hbm_shift;
    p.stride = v.row_stride;
    p.first = v.offset;
    p.last = v.offset + (v.rows - 1) * v.row_stride + p.width;
    p.row = v.row_stride != 0 ? v.offset / v.row_stride : 0;
    p.column = v.row_stride != 0 ? v.offset % v.row_stride : v.offset;
    p.rows = v.rows;
    return p;
  }
  p.area = -1 - (b.core * 2 + (b.space == Space::psum ? 1 : 0));
  p.shift = on_chip_shift;
  p.row = b.partition + v.row;
  p.rows = v.rows;
  p.first = p.column = b.offset + v.offset;
  p.last = p.first + p.width;
  return p;
}

bool overlap(const Footprint& a, const Footprint& b) {
  if (a.first >= b.last || b.first >= a.last) return false;
  const bool comparable = a.stride == b.stride && a.column + a.width <= std::max(a.stride, a.last) &&
                          b.column + b.width <= std::max(b.stride, b.last);
  if (!comparable) return true;
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.column < b.column + b.width &&
         b.column < a.column + a.width;
}

bool covers(const Footprint& a, const Footprint& b) {
  return a.stride == b.stride && a.row <= b.row && a.row + a.rows >= b.row + b.rows && a.column <= b.column &&
         a.column + a.width >= b.column + b.width;
}

}  // namespace trellis::sim::core
