// Environment variables, as Neuron's are read.
#pragma once

#include <cstdlib>
#include <string>

namespace trellis::device {

inline std::string value_of_variable(const char* variable) {  // empty: it is not set
  const char* const value = std::getenv(variable);            // NOLINT(concurrency-mt-unsafe): nothing here changes it
  return value == nullptr ? "" : value;
}

}  // namespace trellis::device
