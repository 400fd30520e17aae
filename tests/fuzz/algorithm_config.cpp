// Any text as a config is refused with invalid_argument, or comes back the same when printed and read again.
#include "schedule/algorithms/algorithm_config.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::schedule;
  try {
    const AlgorithmConfig config = algorithm_config_named({reinterpret_cast<const char*>(data), size});
    if (config.channels < 1 || config.segments < 1 || config.algorithm.empty()) std::abort();
    for (const Rank dim : config.dims)
      if (dim < 1) std::abort();
    const std::string text = text_of(config);
    if (algorithm_config_named(text) != config) std::abort();
    if (!text.starts_with(family_of(config))) std::abort();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
