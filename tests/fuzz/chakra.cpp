// Reads arbitrary bytes as the trace of one rank, and as the identical traces of two. They must be refused with
// invalid_argument, or give tasks that wait only for earlier ones.
#include "sim/cluster/workload/chakra.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::sim;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::array<ChakraFile, 2> files{ChakraFile{"first", bytes}, ChakraFile{"second", bytes}};
  for (std::size_t ranks : {std::size_t{1}, std::size_t{2}}) {
    try {
      const Workload workload = workload_of(read_chakra("fuzz", std::span(files).first(ranks)));
      for (std::size_t i = 0; i < workload.parts.size(); ++i)
        for (std::uint32_t before : workload.parts[i].after)
          if (before >= i) std::abort();
    } catch (const std::invalid_argument&) {
    }
  }
  return 0;
}
