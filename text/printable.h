// Makes text safe for a terminal: spells out what would control the terminal, and bytes that are not text.
#pragma once

#include <string>
#include <string_view>

namespace trellis::text {

// Control characters and bytes that are not UTF-8 become \x1b and the like; everything else stays.
std::string printable(std::string_view text);

// Throws invalid_argument if the text of the file at `path` holds a zero byte, which no text file does: "a.out: not a
// text file, as byte 7 is zero".
void expect_text(std::string_view path, std::string_view text);

}  // namespace trellis::text
