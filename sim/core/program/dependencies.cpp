#include "sim/core/program/dependencies.h"

#include <algorithm>

#include "sim/core/program/kind.h"
#include "sim/core/run/memory.h"

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

std::uint32_t processor_of(const Program& program, const Instruction& i, int rings) {
  if (!i.kind->dma) return static_cast<std::uint32_t>(stream_of(i));
  return static_cast<std::uint32_t>(program.cores * engine_count + i.core * rings + i.queue);
}

std::size_t processors(const Program& program, int rings) {
  return static_cast<std::size_t>(program.cores * (engine_count + rings));
}

Access access_of(const Program& program, const Instruction& i, std::uint32_t processor, std::uint32_t number) {
  const bool adds = i.engine == Engine::tensor && Call(program, i).number(Key::accumulate) != 0;
  return {.processor = processor, .number = number, .adds = adds};
}

Dependencies::Place Dependencies::place_of(const Program& program, const View& v) {
  const Buffer& b = program.buffers[static_cast<std::size_t>(v.buffer)];
  Place p;
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

bool Dependencies::overlap(const Place& a, const Place& b) {
  if (a.first >= b.last || b.first >= a.last) return false;
  const bool comparable = a.stride == b.stride && a.column + a.width <= std::max(a.stride, a.last) &&
                          b.column + b.width <= std::max(b.stride, b.last);
  if (!comparable) return true;
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.column < b.column + b.width &&
         b.column < a.column + a.width;
}

bool Dependencies::covers(const Place& a, const Place& b) {
  return a.stride == b.stride && a.row <= b.row && a.row + a.rows >= b.row + b.rows && a.column <= b.column &&
         a.column + a.width >= b.column + b.width;
}

// A processor starts and ends in order, so it may overwrite what it read or wrote earlier. It may read what it wrote
// only when that is done. Products accumulate in PSUM without a wait.
bool Dependencies::waits_for(const Access& now, const Access& before) {
  if (!now.writes && !before.writes) return false;
  if (now.processor != before.processor) return true;
  return !now.writes && before.writes && !now.adds;
}

}  // namespace trellis::sim::core
