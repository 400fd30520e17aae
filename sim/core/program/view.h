// Operand storage: buffers in HBM, SBUF and PSUM, and the views of them that instructions access.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/types/dtype.h"

namespace trellis::sim::core {

using kernels::DType;

enum class MemorySpace : std::uint8_t { sbuf, psum, hbm };
std::string_view name(MemorySpace);

enum class BufferRole : std::uint8_t {
  internal,
  input,
  output
};  // of an HBM buffer: who provides or takes its contents
std::string_view name(BufferRole);

// A named piece of memory. On chip: `bytes` in each of `partitions` partitions. In HBM: bytes in all.
struct CoreBuffer {
  std::string name;
  MemorySpace space = MemorySpace::sbuf;
  DType type = DType::f32;
  BufferRole role = BufferRole::internal;
  std::uint8_t core = 0;  // owner of the SBUF or PSUM
  std::int32_t partition = 0;
  std::int32_t partitions = 1;
  std::int64_t offset = 0;  // in bytes, in each partition or in HBM
  std::int64_t bytes = 0;
};

struct Dim {
  std::int32_t count = 1;
  std::int32_t stride = 1;  // in elements
  bool operator==(const Dim&) const = default;
};

inline constexpr int most_dims = 4;
inline constexpr std::int32_t most_in_dim = 0x7fffffff;  // rows of a view, and elements of a dimension

// The elements that an operand touches, by row. On chip a row is a partition; in HBM rows are `row_stride` bytes apart.
// Within a row there are up to four dimensions, outermost first.
struct View {
  std::int32_t buffer = -1;
  DType type = DType::f32;
  std::uint8_t dims = 1;
  std::int16_t index = -1;  // a register of the engine that is added to the offset ...
  std::int32_t row = 0;     // first partition, relative to the buffer's first
  std::int32_t rows = 1;
  std::int64_t offset = 0;       // in bytes from the buffer's start, within a row
  std::int64_t row_stride = 0;   // HBM only, in bytes; 0 reads one row repeatedly
  std::int64_t index_scale = 0;  // ... times this many bytes
  std::array<Dim, most_dims> dim = {};

  std::int64_t elements() const {  // of a row
    std::int64_t n = 1;
    for (int d = 0; d < dims; ++d) n *= dim[static_cast<std::size_t>(d)].count;
    return n;
  }
  bool operator==(const View&) const = default;
};

}  // namespace trellis::sim::core
