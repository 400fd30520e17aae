// Text cut into words, their case, and words for enumerators. Views are of the text that was given.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::text {

inline constexpr std::string_view blanks = " \t\r\n";

bool in_name(char c);  // a letter or digit of ASCII, '_', '.' or '-'

std::vector<std::string_view> words(std::string_view text);                  // between blanks, none of them empty
std::vector<std::string_view> words_before_comment(std::string_view line);   // those before a '#'
std::vector<std::string_view> split(std::string_view text, char separator);  // one more than there are separators
std::string_view trimmed(std::string_view text);                             // without blanks at both ends
std::string lower(std::string_view text);                                    // with its capitals as small letters

// The word of an enumerator; `words` are in the order of the enumerators, which count from 0. "?" beyond the list.
template <class Enum, std::size_t count>
constexpr std::string_view word_of(Enum e, const std::string_view (&words)[count]) {
  const auto at = static_cast<std::size_t>(e);
  return at < count ? words[at] : "?";
}

}  // namespace trellis::text
