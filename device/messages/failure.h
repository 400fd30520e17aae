// The errors of messages between devices: a system_error with a code of std::errc, and a sentence.
#pragma once

#include <fmt/format.h>

#include <system_error>
#include <utility>

namespace trellis::device {

template <class... Words>
[[noreturn]] void fail_with(std::errc what, fmt::format_string<Words...> text, Words&&... words) {
  throw std::system_error(std::make_error_code(what), fmt::format(text, std::forward<Words>(words)...));
}

}  // namespace trellis::device
