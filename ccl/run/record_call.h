// Writes a call into the activity that its rank publishes, and into an entry of the rank's flight recorder. Tells
// whether a call scales its input or runs in place.
#pragma once

#include <numeric>

#include "ccl/call.h"
#include "ccl/failure/flight_recorder.h"
#include "ccl/transports/liveness.h"

namespace trellis::ccl {

inline bool does(const Call& c, kernels::Reduction op) {
  return c.op.kind == op && schedule::reduces(c.operation.collective);
}
inline bool scales_first(const Call& c) { return does(c, kernels::Reduction::scaled_sum); }
// A scaled input is copied first, so the schedule of such a call never runs in place.
inline bool runs_in_place(const Call& c, bool in_place) { return in_place && !scales_first(c); }

// The count by which a call is known to others. Where blocks have sizes of their own it is the sum: of all blocks, or
// of those that this rank sends where each pair of ranks has a size.
inline std::uint64_t shown_count(const Call& c) {
  return c.counts.empty() ? c.count : std::accumulate(c.counts.begin(), c.counts.end(), std::size_t{0});
}

// Members are overwritten one by one, without rebuilding the struct: every small message takes this path.
inline void show_call(RankActivity& a, const Call& c, kernels::DType wire, std::uint64_t operation) {
  a.operation = operation;
  a.count = shown_count(c);
  a.step = -1;
  a.waits_for = -1;
  a.root = c.operation.root;
  a.collective = static_cast<std::uint8_t>(c.operation.collective);
  a.type = static_cast<std::uint8_t>(c.type);
  a.wire = static_cast<std::uint8_t>(wire);
  a.reduction = static_cast<std::uint8_t>(c.op.kind);
}

inline void record_call(FlightRecorderEntry& r, const Call& c, std::uint64_t operation) {
  r.operation = operation;
  r.count = shown_count(c);
  r.points = 0;
  r.division = nullptr;
  r.root = c.operation.root;
  r.peer = c.operation.peer;
  r.collective = c.operation.collective;
  r.type = c.type;
  r.op = c.op.kind;
}

}  // namespace trellis::ccl
