// Any text as a table of measurements: refused with invalid_argument, or rows with no more cells than columns, whose
// numbers are above 0 or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "measure/calibration/measurements_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::measure;
  try {
    const MeasuredTable table = read_table({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (table.rows.empty() || table.columns.empty()) std::abort();
    for (const TableRow& row : table.rows) {
      if (row.cells.size() > table.columns.size() || row.place.empty()) std::abort();
      try {
        if (const auto seconds = row.seconds(); seconds && !(*seconds >= 0)) std::abort();
      } catch (const std::invalid_argument&) {
      }
    }
  } catch (const std::invalid_argument&) {  // refused
  }
  return 0;
}
