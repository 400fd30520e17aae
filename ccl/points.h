// Sends and receives of a group as one program: those to or from one peer in order, all peers at once.
#pragma once

#include <optional>

#include "ccl/communicator.h"
#include "ccl/compiled.h"

namespace trellis::ccl {

// A Call of send_recv, without what that does not need.
struct Point {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  kernels::DType type = kernels::DType::f32;
  Rank from = 0, to = 0;
  bool operator==(const Point&) const = default;
};
Call call_of(const Point&);
inline Point point_of(const Call& c) { return {c.input, c.output, c.count, c.type, c.root, c.peer}; }

// Of messages between ranks, so that both ends must name the same type: base and its number.
inline constexpr std::uint32_t mark_of_points = 0x706F'6900;
std::optional<kernels::DType> type_of_mark(std::uint32_t mark);

// Throws invalid_argument when a rank's sends to itself do not meet as many receives of the same size and type.
void check_own(std::span<const Point>, Rank rank);

// Its places are addresses, in bytes, whatever the buffer. Throws as check_own.
Compiled compile_points(std::span<const Point>, Rank rank, int lane);

// That nothing is wrong with it is seen at a glance; else check() tells.
bool plainly_right(const Point&, Rank rank, Rank ranks);

}  // namespace trellis::ccl
