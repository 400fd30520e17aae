// Prints messages to standard error. That may be closed, full, or a terminal that has gone: then the message is lost,
// and the program goes on.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace trellis::ccl {

inline void tell_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

template <class... Values>
void tell(fmt::format_string<Values...> text, Values&&... values) {
  tell_text(fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace trellis::ccl
