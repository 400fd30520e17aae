// Any text: it is refused, or it comes back the same when printed, and verify has a verdict.
#include "schedule/formats/text.h"

#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "schedule/proof/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::schedule;
  try {
    const Schedule schedule = parse({reinterpret_cast<const char*>(data), size});
    const std::string text = print(schedule);
    if (print(parse(text)) != text) std::abort();
    verify(schedule, {.cells = 1 << 20, .work = 1 << 20});
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
