// A number from the system that no former process can be expected to have had.
#pragma once

#include <cstdint>

namespace trellis::ccl::libfabric {

std::uint64_t random_number();  // throws system_error when the system gives none

}  // namespace trellis::ccl::libfabric
