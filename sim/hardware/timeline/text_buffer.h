// A text buffer that grows by formatted pieces; reports and traces are written into it.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace trellis::sim {

using Text = fmt::memory_buffer;

template <class... Values>
void put(Text& text, fmt::format_string<Values...> form, Values&&... values) {
  fmt::format_to(std::back_inserter(text), form, std::forward<Values>(values)...);
}

}  // namespace trellis::sim
