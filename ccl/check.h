// What is wrong with a call by itself, found before anything is sent.
#pragma once

#include <array>
#include <optional>

#include "ccl/communicator.h"

namespace trellis::ccl {

// Throws invalid_argument with the value at fault. Tells whether the call is in place, as NCCL defines it.
bool check(const Call&, Rank rank, Rank ranks);

struct Extents {
  std::size_t input = 0, output = 0;  // bytes of this rank's buffers; 0: it has none
};
Extents extents_of(const Call&, Rank rank, Rank ranks);

// What a call's numbers come to, whatever its places in memory.
struct CallShape {
  Extents extents = {};
  bool in_place = false;                            // it can be
  std::size_t before_input = 0, before_output = 0;  // it is, when these bytes further on both are at one place
};

// The same check of a communicator's calls, one at a time. A call mostly has the numbers of the last one of its
// collective, and only its places are new.
class CallCheck {
 public:
  CallCheck(Rank rank, Rank ranks) : rank_(rank), ranks_(ranks) {}
  bool operator()(const Call&);

 private:
  struct Numbers {
    std::size_t count = 0;
    Rank root = 0;
    kernels::DType type = {};
    kernels::Reduction op = {};
    bool operator==(const Numbers&) const = default;
  };
  struct Known {
    std::optional<Numbers> numbers = {};
    CallShape shape = {};
  };
  const Rank rank_, ranks_;
  std::array<Known, static_cast<std::size_t>(Collective::barrier) + 1> known_ = {};  // of each collective
};

}  // namespace trellis::ccl
