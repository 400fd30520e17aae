// The outcome of creating a communicator: made or dropped. Decided once for all members, by the first that finds that
// all have joined, or that one will not.
#pragma once

#include <cstdint>

namespace trellis::ccl {

enum class JoinOutcome : std::uint32_t { open, made, dropped };

}  // namespace trellis::ccl
