// A line of a text file, cut into words.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace trellis::sim {

// Those before a '#'.
inline std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) < line.size();) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace trellis::sim
