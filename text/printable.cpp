#include "text/printable.h"

#include <fmt/format.h>

#include "text/refuse.h"

namespace trellis::text {
namespace {

// Bytes of the UTF-8 character that the text begins with; 0: it begins with none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool outside = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  const bool control = length == 2 && first == 0xc2 && byte(1) < 0xa0;
  return overlong || outside || control ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t length = first < 0x20 || first == 0x7f ? 0 : character_bytes(text);
    if (length == 0)
      out += fmt::format("\\x{:02x}", first);
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

void expect_text(std::string_view path, std::string_view text) {
  if (const std::size_t at = text.find('\0'); at != text.npos)
    text::refuse("{}: not a text file, as byte {} is zero", path, at + 1);
}

}  // namespace trellis::text
