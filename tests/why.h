// The error that a call throws.
#pragma once

#include <stdexcept>
#include <string>

namespace trellis {

// The message of the error; empty: none was thrown. Errors of other types are not caught.
template <class Error = std::invalid_argument>
std::string why(const auto& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace trellis
