#include "sim/cluster/machine/dims_text.h"

#include <limits>
#include <stdexcept>

#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::sim {

std::vector<Chip> dims_of(std::string_view text) {
  if (text.empty()) throw std::invalid_argument("no sizes are given: expected some like 8 or 4x4");
  std::vector<Chip> dims;
  for (const std::string_view word : text::split(text, 'x')) {
    const auto size = text::number<Chip>(word, 1);
    if (!size && !word.empty() && word.find_first_not_of("0123456789") == word.npos && word.front() != '0')
      text::refuse("'{}' in '{}' is too large: expected at most {}", word, text, std::numeric_limits<Chip>::max());
    if (!size) text::refuse("'{}': expected sizes like 8 or 4x4", text);
    dims.push_back(*size);
  }
  return dims;
}

}  // namespace trellis::sim
