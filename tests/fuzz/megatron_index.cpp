// Any bytes as Megatron's .idx of a data file of any length: refused with invalid_argument, or its documents fill the
// data file, one after the other.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "train/data/megatron_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint32_t data_bytes = 0;
  if (size < sizeof data_bytes) return 0;
  std::memcpy(&data_bytes, data, sizeof data_bytes);
  try {
    const auto index = trellis::train::megatron_index(
        "input", {reinterpret_cast<const char*>(data) + sizeof data_bytes, size - sizeof data_bytes}, data_bytes);
    if (index.width == 0 || index.documents.empty() || index.documents.front() != 0) std::abort();
    if (index.documents.back() * index.width != data_bytes) std::abort();
    for (std::size_t i = 1; i < index.documents.size(); ++i)
      if (index.documents[i] < index.documents[i - 1]) std::abort();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
