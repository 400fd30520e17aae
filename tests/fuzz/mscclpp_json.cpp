// Any JSON: it is refused, or verify has a verdict on what was read.
#include "schedule/mscclpp_json.h"

#include <cstdint>
#include <stdexcept>

#include "schedule/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::schedule;
  try {
    verify(import_mscclpp({reinterpret_cast<const char*>(data), size}), {.cells = 1 << 20, .touches = 1 << 20});
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
