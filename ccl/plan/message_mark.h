// The mark of a message: which call it belongs to, and which operation. A message whose mark is not the expected one is
// of another call.
#pragma once

#include <cstdint>

#include "ccl/call.h"
#include "ccl/plan/hash_combine.h"

namespace trellis::ccl {

// A hash of a call, whatever its operation number; `wire`: the type of its messages; `schedule`: a hash of the schedule
// that it runs by. Equal on ranks that make the same call by the same schedule.
std::uint64_t mark_of_call(const Call&, kernels::DType wire, std::uint64_t schedule);

// Ranks that make the same call as the same operation have the same mark. The exchange in which ranks agree about an
// operation before it (ccl/run/device_agreement.h) has the operation's number but another mark, even if their messages
// are alike. The lowest byte is that of the operation's number.
inline std::uint32_t mark_of(std::uint64_t of_call, std::uint64_t operation, bool exchange) {
  const std::uint64_t hash = hash_combine(of_call, operation << 1 | (exchange ? 1 : 0));
  return static_cast<std::uint32_t>(hash >> 40 << 8 | (operation & 0xFF));
}

// The number of the operation that a message with this mark belongs to: one of the 256 nearest to `near`, most of them
// at or before it.
inline std::uint64_t operation_of(std::uint32_t mark, std::uint64_t near) {
  const auto after = static_cast<std::int8_t>(static_cast<std::uint8_t>(mark - near));
  return near + static_cast<std::uint64_t>(std::int64_t{after});
}
inline constexpr std::uint64_t operations_told_apart = 127;  // so many after `near` are not taken for earlier ones

}  // namespace trellis::ccl
