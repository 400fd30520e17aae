// Any JSON: it is refused, or verify has a verdict on what was read.
#include "schedule/formats/mscclpp_json.h"

#include <cstdint>
#include <stdexcept>

#include "schedule/proof/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::schedule;
  try {
    verify(import_mscclpp({reinterpret_cast<const char*>(data), size}), {.cells = 1 << 20, .work = 1 << 20});
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
