#include "sim/core/run/core_memory.h"

#include <cmath>
#include <cstring>

#include "sim/core/program/operand_footprint.h"
#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

constexpr std::int64_t alignment = 64;
// Bytes added to each partition, so that the elements of a column do not map to one cache set.
constexpr std::int64_t padding = 5 * 64;

std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

CoreMemory::CoreMemory(const NeuronCoreProgram& program, const ChipSpec& chip) : program_(program) {
  const auto sbuf = static_cast<std::int64_t>(chip.memory.sbuf_bytes) + padding;
  const auto psum = static_cast<std::int64_t>(chip.memory.psum_bytes) + padding;
  const std::int64_t partitions = chip.memory.partitions;
  on_chip_.resize(static_cast<std::size_t>(program.cores * partitions * (sbuf + psum)));
  states_.assign(static_cast<std::size_t>(program.cores * engine_count),
                 EngineState(static_cast<std::size_t>(partitions)));
  std::int64_t hbm = 0;
  for (const CoreBuffer& b : program.buffers)
    if (b.space == MemorySpace::hbm) hbm += aligned(b.bytes);
  hbm_.resize(static_cast<std::size_t>(hbm));

  std::int64_t next = 0;
  places_.reserve(program.buffers.size());
  for (const CoreBuffer& b : program.buffers) {
    if (b.space == MemorySpace::hbm) {
      places_.push_back({hbm_.data() + next, 0, b.bytes});
      next += aligned(b.bytes);
      continue;
    }
    const bool in_psum = b.space == MemorySpace::psum;
    const std::int64_t stride = in_psum ? psum : sbuf;
    const std::int64_t first = program.cores * partitions * (in_psum ? sbuf : 0);
    places_.push_back(
        {on_chip_.data() + first + (b.core * partitions + b.partition) * stride + b.offset, stride, b.bytes});
  }
}

std::int64_t register_number(double value) {
  constexpr double most = 1e12;
  if (!(std::abs(value) <= most))
    text::refuse("a register cannot hold {}: expected a number of at most {}", value, most);
  return static_cast<std::int64_t>(value);
}

std::span<std::byte> CoreMemory::hbm(std::string_view name) {
  for (std::size_t b = 0; b < program_.buffers.size(); ++b)
    if (program_.buffers[b].name == name && program_.buffers[b].space == MemorySpace::hbm)
      return {places_[b].at, static_cast<std::size_t>(places_[b].bytes)};
  text::refuse("{}: no HBM buffer '{}'", program_.name, name);
}

std::int64_t CoreMemory::row_stride(const View& v) const {
  const auto b = static_cast<std::size_t>(v.buffer);
  return program_.buffers[b].space == MemorySpace::hbm ? v.row_stride : places_[b].stride;
}

std::byte* CoreMemory::row(const View& v, std::int64_t row) {
  const Place& place = places_[static_cast<std::size_t>(v.buffer)];
  std::int64_t offset = v.offset;
  if (v.index >= 0) {
    const auto moved = moved_by(program_, v, registers_[v.index]);
    if (!moved) text::refuse("{}: {}", program_.name, leads_out(program_, v, registers_[v.index]));
    offset = moved->offset;
  }
  if (place.stride == 0) return place.at + offset + row * v.row_stride;
  return place.at + (v.row + row) * place.stride + offset;
}

bool contiguous(const View& v) {
  std::int64_t expected = 1;
  for (int d = v.dims - 1; d >= 0; --d) {
    const Dim& dim = v.dim[static_cast<std::size_t>(d)];
    if (dim.count != 1 && dim.stride != expected) return false;
    expected *= dim.count;
  }
  return true;
}

void CoreMemory::read_bytes(const View& v, std::int64_t r, std::byte* to) {
  const std::byte* from = row(v, r);
  const auto size = static_cast<std::int64_t>(kernels::size_of(v.type));
  if (contiguous(v)) {
    std::memcpy(to, from, static_cast<std::size_t>(v.elements() * size));
    return;
  }
  each_run(v, [&](std::int64_t at, std::int64_t count) {
    std::memcpy(to, from + at * size, static_cast<std::size_t>(count * size));
    to += count * size;
  });
}

void CoreMemory::write_bytes(const View& v, std::int64_t r, const std::byte* from) {
  std::byte* to = row(v, r);
  const auto size = static_cast<std::int64_t>(kernels::size_of(v.type));
  if (contiguous(v)) {
    std::memcpy(to, from, static_cast<std::size_t>(v.elements() * size));
    return;
  }
  each_run(v, [&](std::int64_t at, std::int64_t count) {
    std::memcpy(to + at * size, from, static_cast<std::size_t>(count * size));
    from += count * size;
  });
}

template <class T>
void CoreMemory::read_as(const View& v, std::int64_t r, DType as, T* to) {
  const auto n = static_cast<std::size_t>(v.elements());
  if (v.type == as) return read_bytes(v, r, reinterpret_cast<std::byte*>(to));
  const std::byte* from = row(v, r);
  if (!contiguous(v)) {
    row_.resize(n * kernels::size_of(v.type));
    read_bytes(v, r, row_.data());
    from = row_.data();
  }
  kernels::cast(v.type, from, as, to, n);
}

template <class T>
void CoreMemory::write_as(const View& v, std::int64_t r, DType as, const T* from, const kernels::CastOptions& options) {
  const auto n = static_cast<std::size_t>(v.elements());
  if (v.type == as) return write_bytes(v, r, reinterpret_cast<const std::byte*>(from));
  if (contiguous(v)) return kernels::cast(as, from, v.type, row(v, r), n, options);
  row_.resize(n * kernels::size_of(v.type));
  kernels::cast(as, from, v.type, row_.data(), n, options);
  write_bytes(v, r, row_.data());
}

void CoreMemory::read(const View& v, std::int64_t r, float* to) { read_as(v, r, DType::f32, to); }
void CoreMemory::read(const View& v, std::int64_t r, double* to) { read_as(v, r, DType::f64, to); }
void CoreMemory::write(const View& v, std::int64_t r, const float* from, const kernels::CastOptions& options) {
  write_as(v, r, DType::f32, from, options);
}
void CoreMemory::write(const View& v, std::int64_t r, const double* from, const kernels::CastOptions& options) {
  write_as(v, r, DType::f64, from, options);
}

}  // namespace trellis::sim::core
