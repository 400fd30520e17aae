// Numbers from text: digits and a sign "-", a point and an exponent where the type has them; no blanks and no "+".
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace trellis::text {

// Parses the number at the beginning of the text and removes it from there. None where there is none, or one that the
// type can't hold; the text then stays as it was.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// The number that the whole text is; none where it is something else.
template <class Number>
std::optional<Number> number(std::string_view text) {
  const std::optional<Number> value = take_number<Number>(text);
  return text.empty() ? value : std::nullopt;
}

// None also where the number is outside these bounds, as NaN and the infinities always are.
template <class Number>
std::optional<Number> number(std::string_view text, std::type_identity_t<Number> least,
                             std::type_identity_t<Number> most = std::numeric_limits<Number>::max()) {
  const std::optional<Number> value = number<Number>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

// A number that is neither NaN nor an infinity.
inline std::optional<double> finite_number(std::string_view text) {
  return number<double>(text, std::numeric_limits<double>::lowest());
}

// Parses a whole number from `least` to `most`. `what`: what it is, for the error. Throws invalid_argument: "--root 9:
// expected a whole number from 0 to 7".
std::int64_t count(std::string_view what, std::string_view text, std::int64_t least, std::int64_t most);

// What a number may be, for an error message: "0 to 3", "0 or 1", "1".
std::string range_text(std::int64_t least, std::int64_t most);

}  // namespace trellis::text
