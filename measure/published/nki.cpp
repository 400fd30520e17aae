// Kernels whose text is public, timed from that text (python/trellis/nki): bench/nki_ladders.py writes each record with
// the simulated time, and the least and the most that it may be, depending on what compiler and chip do.
#include "measure/published/record.h"

namespace trellis::measure {
namespace {

std::optional<RecordAnswer> nki(const Record& r, const std::vector<Record>&) {
  if (r.kind() != "nki") return std::nullopt;
  const auto simulated = r.number("simulated"), low = r.number("low"), high = r.number("high");
  if (!simulated || !low || !high) return RecordAnswer::no("parameters simulated, low and high are not there");
  return RecordAnswer{.simulated = *simulated, .range = {*low, *high}, .kind = "kernel", .by = "the kernel's text"};
}

const RegisteredRecordModel registered("NKI kernels", nki);

}  // namespace
}  // namespace trellis::measure
