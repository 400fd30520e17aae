// What a call complains of.
#pragma once

#include <stdexcept>
#include <string>

namespace trellis::sim {

inline std::string why(const auto& what) {
  try {
    what();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace trellis::sim
