// Checks one call's arguments on their own, before anything is sent.
#pragma once

#include <array>
#include <optional>

#include "ccl/call.h"
#include "ccl/plan/plan_key.h"

namespace trellis::ccl {

// Throws invalid_argument that contains the value at fault. Returns whether the call is in place, as NCCL defines it.
bool check(const Call&, Rank rank, Rank ranks);

struct BufferBytes {
  std::size_t input = 0, output = 0;  // bytes of this rank's buffers; 0: no buffer
};
BufferBytes extents_of(const Call&, Rank rank, Rank ranks);

// What a call's arguments other than its buffers determine.
struct CallShape {
  BufferBytes extents = {};
  bool in_place = false;                            // the call may be in place
  std::size_t before_input = 0, before_output = 0;  // in place if the buffers, each plus its offset here, coincide
};

// The same check for a communicator's calls, one at a time. Usually a call has the same numbers as the last call of its
// collective and only new buffers, so the rest of the check is cached.
class CallCheck {
 public:
  CallCheck(Rank rank, Rank ranks) : rank_(rank), ranks_(ranks) {}
  bool operator()(const Call&);

 private:
  struct Known {
    std::optional<PlanKey> asked = {};
    CallShape shape = {};
  };
  const Rank rank_, ranks_;
  std::array<Known, static_cast<std::size_t>(Collective::barrier) + 1> known_ = {};  // one per collective
};

}  // namespace trellis::ccl
