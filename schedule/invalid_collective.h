// The exception that check(Task) throws. It names the member at fault as a schedule's text spells it.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace trellis::schedule {

struct InvalidCollective : std::invalid_argument {
  InvalidCollective(std::string_view which, const std::string& text) : std::invalid_argument(text), member(which) {}
  std::string_view member;
};

}  // namespace trellis::schedule
