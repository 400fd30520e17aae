#include "train/config/allowed_range.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace trellis::train {

bool AllowedRange::has(double value) const {
  if (!values.empty()) return std::ranges::find(values, value) != values.end();
  if (std::isinf(value) && !infinity) return false;
  const bool enough = without_least ? value > least : value >= least;
  return enough && (without_most ? value < most : value <= most);
}

std::string AllowedRange::words() const {
  if (!values.empty()) return fmt::format("{}", fmt::join(values, " or "));
  const std::string first = fmt::format("{}", least);
  if (std::isinf(most))
    return (without_least ? fmt::format("more than {}", first) : first + " or more") +
           (infinity ? ", infinity too" : "");
  const std::string last = fmt::format("{}{:.0f}", without_most ? "below " : "", most);
  return without_least ? fmt::format("more than {}, to {}", first, last) : fmt::format("{} to {}", first, last);
}

}  // namespace trellis::train
