// Any bytes as a NEFF file: refused, or each file in it lies within these bytes, and its program comes back the same
// when written and read again.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "device/neff/neff.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::device;
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const Neff neff = read_neff(bytes);
    for (const NeffEntry& f : neff.files)
      if (f.bytes.data() < bytes.data() || f.bytes.data() + f.bytes.size() > bytes.data() + size) std::abort();
    const auto again = write_neff(neff.header.name, program_of(neff), neff.header.logical_size);
    if (program_of(read_neff(again)) != program_of(neff)) std::abort();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
