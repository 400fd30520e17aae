// Any bytes as a flight recorder's dump: it is refused, or what it tells is within its own bounds.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "tools/doctor_dump.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto d = trellis::tools::rank_dump_in({reinterpret_cast<const char*>(data), size});
    if (d.rank < 0 || d.rank >= d.ranks || d.waits_for < -1 || d.waits_for >= d.ranks || d.step < -1) std::abort();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
