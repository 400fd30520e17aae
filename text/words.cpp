#include "text/words.h"

#include <algorithm>
#include <cctype>

namespace trellis::text {

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; (at = text.find_first_not_of(blanks, at)) < text.size();) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end;
  }
  return all;
}

std::vector<std::string_view> words_before_comment(std::string_view line) {
  return words(line.substr(0, line.find('#')));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

std::string lower(std::string_view text) {
  std::string low(text);
  std::ranges::transform(low, low.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return low;
}

}  // namespace trellis::text
