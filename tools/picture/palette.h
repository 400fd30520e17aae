// Colours that are the same in all pictures and that colour-blind readers can tell apart. After eight they repeat, in
// outline.
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
