// Any text as a selection table: it is refused with invalid_argument; or it is a table that reads back as the same when
// printed, is refused wherever it is cut off, and has candidates for the sizes and ranks of each of its rules.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "ccl/plan/selection_table.h"

namespace {

bool reads(std::string_view text) {
  try {
    trellis::ccl::SelectionTable::read(text);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::ccl;
  try {
    const SelectionTable table = SelectionTable::read({reinterpret_cast<const char*>(data), size});
    const std::string text = table.text();
    if (SelectionTable::read(text).text() != text) std::abort();
    if (size > 0 && reads(text.substr(0, data[0] * (text.size() - 1) / 256))) std::abort();
    for (const SelectionRule& r : table.rules()) {
      if (r.ranks < 1 || r.config.algorithm.empty()) std::abort();
      if (table.nearest(r.collective, r.ranks, r.machine) != r.ranks) std::abort();
      const auto type = r.type.value_or(trellis::kernels::DType::f32);
      if (table.candidates(r.collective, r.ranks, r.from_bytes, type, r.machine, r.cores).empty()) std::abort();
    }
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
