// The error for a value that a user gave and that is not accepted.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace trellis::text {

// Throws invalid_argument with the formatted message.
template <class... T>
[[noreturn]] void refuse(fmt::format_string<T...> message, T&&... parts) {
  throw std::invalid_argument(fmt::format(message, std::forward<T>(parts)...));
}

}  // namespace trellis::text
