// Any text as a selection table: refused with invalid_argument, or printed it reads back as the same, and it has an
// answer to whatever it is asked.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "ccl/selector.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::ccl;
  try {
    const Selections table = Selections::read({reinterpret_cast<const char*>(data), size});
    const std::string text = table.text();
    if (Selections::read(text).text() != text) std::abort();
    for (const Rule& r : table.rules()) {
      if (r.ranks < 1 || r.choice.algorithm.empty()) std::abort();
      if (table.nearest(r.collective, r.ranks, r.machine) != r.ranks) std::abort();
      const auto type = r.type.value_or(trellis::kernels::DType::f32);
      if (table.choices(r.collective, r.ranks, r.from_bytes, type, r.machine).empty()) std::abort();
    }
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
