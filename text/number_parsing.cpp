#include "text/number_parsing.h"

#include <fmt/format.h>

#include "text/refuse.h"

namespace trellis::text {

std::int64_t count(std::string_view what, std::string_view text, std::int64_t least, std::int64_t most) {
  if (const auto value = number<std::int64_t>(text, least, most)) return *value;
  text::refuse("{} {}: expected {}{}", what, text, most > least + 1 ? "a whole number from " : "",
               range_text(least, most));
}

std::string range_text(std::int64_t least, std::int64_t most) {
  if (least == most) return fmt::format("{}", least);
  return fmt::format("{} {} {}", least, most == least + 1 ? "or" : "to", most);
}

}  // namespace trellis::text
