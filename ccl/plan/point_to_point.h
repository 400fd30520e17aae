// Compiles the sends and receives of a group into one program: in order for each peer, all peers at once.
#pragma once

#include <optional>

#include "ccl/call.h"
#include "ccl/plan/compiled_program.h"

namespace trellis::ccl {

// A send_recv Call, reduced to the members that it needs.
struct SendRecv {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  kernels::DType type = kernels::DType::f32;
  Rank from = 0, to = 0;
  bool operator==(const SendRecv&) const = default;
};
Call call_of(const SendRecv&);
inline SendRecv send_recv_of(const Call& c) {
  return {c.input, c.output, c.count, c.type, c.operation.root, c.operation.peer};
}

// Base of the hash of messages between ranks; the type's number is added, so both ends must name the same type.
inline constexpr std::uint32_t send_recv_hash = 0x706F'6900;
std::optional<kernels::DType> type_of_hash(std::uint32_t mark);

// Throws invalid_argument when a rank's sends to itself do not match its receives in number, size and type. Empty ones
// are ignored.
void check_own(std::span<const SendRecv>, Rank rank);

// In the result, a place's `first` is an address in bytes, whatever its buffer. Throws as check_own does.
CompiledProgram compile_send_recvs(std::span<const SendRecv>, Rank rank, int lane);

// Fast check that it is certainly valid; if false, check() decides.
bool plainly_right(const SendRecv&, Rank rank, Rank ranks);

}  // namespace trellis::ccl
