#include "sim/machine/dims_text.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace trellis::sim {

std::vector<Chip> dims_of(std::string_view text) {
  std::vector<Chip> dims;
  const auto complain = [what = text] {
    throw std::invalid_argument(fmt::format("'{}': expected sizes like 8 or 4x4", what));
  };
  while (!text.empty()) {
    Chip size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    const bool last = end == text.data() + text.size();
    if (error != std::errc{} || size < 1 || (!last && (*end != 'x' || end + 1 == text.data() + text.size())))
      complain();
    dims.push_back(size);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + (last ? 0 : 1));
  }
  if (dims.empty()) complain();
  return dims;
}

}  // namespace trellis::sim
