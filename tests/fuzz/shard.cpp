// Any bytes as a file of safetensors: refused with invalid_argument, or every tensor's bytes lie in the file and its
// rectangle in the whole tensor.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "train/checkpoint/shard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::train;
  try {
    for (const ShardEntry& e : shard_entries("input", {reinterpret_cast<const char*>(data), size}, size)) {
      const TensorSlice& s = e.slice;
      const std::uint64_t bytes = s.elements() * trellis::kernels::size_of(e.type);
      if (e.first > size || bytes > size - e.first) std::abort();
      if (s.row + s.row_count > s.rows || s.column + s.column_count > s.columns) std::abort();
    }
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
