// Any XML: it is refused, or verify has a verdict on what was read; what is proved can be written and is proved again.
#include "schedule/formats/msccl_xml.h"

#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "schedule/proof/verify.h"

namespace {

using namespace trellis::schedule;

constexpr ProofLimits little{.cells = 1 << 20, .work = 1 << 20};

std::string exported(const Schedule& schedule) {
  try {
    return export_msccl(schedule);
  } catch (const std::invalid_argument&) {  // more than the format has room for
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Schedule schedule = import_msccl({reinterpret_cast<const char*>(data), size});
    if (!verify(schedule, little).ok()) return 0;
    const std::string xml = exported(schedule);
    if (!xml.empty() && !verify(import_msccl(xml), little).ok()) std::abort();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
