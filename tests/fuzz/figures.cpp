// Any text as a data file: refused with invalid_argument, or read, printed, and read back as the same.
#include "sim/hardware/figures/figures.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trellis::sim::Figures;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Figures::Others others = [&](std::string_view name) {
    return name == "itself" ? text : std::string_view("a.b = 1 ns 0..2 | assumed | reason\n");
  };
  try {
    const Figures figures = Figures::read(text, others);
    const std::string printed = figures.text();
    try {
      if (Figures::read(printed).text() != printed) std::abort();
    } catch (const std::invalid_argument&) {
      std::abort();
    }
  } catch (const std::invalid_argument&) {  // refused
  }
  return 0;
}
