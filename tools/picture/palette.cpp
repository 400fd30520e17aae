#include "tools/picture/palette.h"

#include <array>

namespace trellis::tools::draw {
namespace {

constexpr std::string_view light = "#ffffff", dark = "#1b1f24";

// The hues of Okabe and Ito, without yellow and black, which are invisible on light or dark paper.
constexpr std::array<Ink, 8> inks{{{"#0072b2", light},
                                   {"#d55e00", light},
                                   {"#009e73", light},
                                   {"#cc79a7", dark},
                                   {"#e69f00", dark},
                                   {"#56b4e9", dark},
                                   {"#7b52ab", light},
                                   {"#8c6d46", light}}};

}  // namespace

Ink ink(std::int64_t number) {
  const auto wrapped = static_cast<std::uint64_t>(number < 0 ? 0 : number) % (2 * inks.size());
  Ink found = inks[wrapped % inks.size()];
  found.outlined = wrapped >= inks.size();
  return found;
}

Ink mixed() { return {"#6b7480", light}; }

}  // namespace trellis::tools::draw
