// Any text as a way: refused with invalid_argument, or it comes back the same when printed and read again.
#include "schedule/algorithms/algorithm_config.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::schedule;
  try {
    const AlgorithmConfig way = algorithm_config_named({reinterpret_cast<const char*>(data), size});
    if (way.channels < 1 || way.segments < 1 || way.algorithm.empty()) std::abort();
    for (const Rank dim : way.dims)
      if (dim < 1) std::abort();
    const std::string text = text_of(way);
    if (algorithm_config_named(text) != way) std::abort();
    if (!text.starts_with(family_of(way))) std::abort();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
