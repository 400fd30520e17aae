// Text cut into words. Views are of the text that was given.
#pragma once

#include <string_view>
#include <vector>

namespace trellis::text {

inline constexpr std::string_view blanks = " \t\r\n";

std::vector<std::string_view> words(std::string_view text);                  // between blanks, none of them empty
std::vector<std::string_view> words_before_comment(std::string_view line);   // those before a '#'
std::vector<std::string_view> split(std::string_view text, char separator);  // one more than there are separators
std::string_view trimmed(std::string_view text);                             // without blanks at both ends

}  // namespace trellis::text
