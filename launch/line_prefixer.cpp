#include "launch/line_prefixer.h"

#include <cstddef>

namespace trellis::launch {
namespace {

constexpr std::size_t longest_line = std::size_t{1} << 20;

}  // namespace

void LinePrefixer::end_line(std::string& to, std::string_view ending) {
  to.append(prefix_).append(begun_).append(ending);
  begun_.clear();
}

std::string LinePrefixer::take(std::string_view arrived) {
  std::string whole;
  for (const char c : arrived) {
    if (c == '\n') {
      end_line(whole, returned_ ? "\r\n" : "\n");
    } else {
      if (returned_ && !begun_.empty()) end_line(whole, "\n");
      if (c != '\r') begun_ += c;
      if (begun_.size() == longest_line) end_line(whole, "\n");
    }
    returned_ = c == '\r';
  }
  return whole;
}

std::string LinePrefixer::finish() {
  std::string rest;
  if (!begun_.empty()) end_line(rest, "\n");
  return rest;
}

}  // namespace trellis::launch
