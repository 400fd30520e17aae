// Which numbers a setting may have.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace trellis::train {

struct AllowedRange {
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool without_least = false, without_most = false;
  bool infinity = false;            // allowed too, if there is no upper bound
  std::vector<double> values = {};  // if any, only these are allowed

  bool has(double) const;     // false for a NaN
  std::string words() const;  // "1 or more"
};

inline AllowedRange at_least(double least) { return {.least = least}; }
inline AllowedRange above(double least) { return {.least = least, .without_least = true}; }
inline AllowedRange between(double least, double most) { return {.least = least, .most = most}; }
inline AllowedRange from_below(double least, double most) {
  return {.least = least, .most = most, .without_most = true};
}
inline AllowedRange above_to(double least, double most) {
  return {.least = least, .most = most, .without_least = true};
}
inline AllowedRange one_of(std::vector<double> values) { return {.values = std::move(values)}; }

}  // namespace trellis::train
