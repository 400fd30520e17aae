// What a call complains of.
#pragma once

#include <stdexcept>
#include <string>

namespace trellis {

// Empty: nothing was thrown. Errors of other kinds pass.
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
