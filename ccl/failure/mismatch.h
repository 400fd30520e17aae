// Ranks that make different calls: how a rank finds out, and the error that names both calls.
#pragma once

#include <string>

#include "ccl/transports/transport.h"

namespace trellis::ccl {

class FlightRecorder;

std::string text_of(const RankActivity&);  // "operation 12, all_reduce of 1024 f32, sum", "a split after operation 12"
bool counted(const RankActivity&);         // it is a collective; these are numbered, sends and receives are not

// Throws Mismatch if the other rank's call differs from this rank's in the operation that this rank is in.
void check_same_call(const Transport&, const RankActivity& mine, Rank other);

// Throws Mismatch if a message has arrived for a collective that is over on this rank and did not receive it. `ended`:
// the number of the last collective that is over. `past`: this rank's operations.
void check_unread(Transport&, const FlightRecorder& past, const RankActivity& mine, std::uint64_t ended);

// Throws Mismatch if a message of this rank's operation has arrived by the other path: over a lane while this rank's
// messages go in rounds (in_rounds), or the reverse. Then the ranks' calls or settings differ, and no receiver finds
// it.
void check_paths(const Transport&, const FlightRecorder& past, const RankActivity& mine, bool in_rounds);

// Throws Mismatch when ranks were in different operations, and each finished its own before the other's could be seen.
// Called when this rank's operations are over and no more will follow.
void check_over(Transport&, const FlightRecorder& past, const RankActivity& mine);

// Reports the difference between the two calls that a mismatched message reveals.
[[noreturn]] void explain(Transport&, const FlightRecorder& past, const RankActivity& mine, const MessageMismatch&);

}  // namespace trellis::ccl
