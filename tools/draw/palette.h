// Colours that stay the same from picture to picture and that colour-blind readers tell apart; beyond eight they come
// again, in outline.
#pragma once
#include <cstdint>
#include <string_view>

namespace trellis::tools::draw {

struct Ink {
  std::string_view colour;  // of lines, and of a filled label
  std::string_view text;    // on a filled label
  bool outlined = false;
};

Ink ink(std::int64_t number);
Ink mixed();  // for runs that span several blocks

}  // namespace trellis::tools::draw
