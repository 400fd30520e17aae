// The one loop in which operations run: the operation of a plain call, those of a stream, those of a group over several
// communicators.
#pragma once

#include <span>
#include <utility>

#include "ccl/run/communicator_state.h"

namespace trellis::ccl {

// The operations of one communicator, which run in order. A derived class adds `bool open_next()`, which opens the next
// one; false: none is left.
struct Strand {
  Communicator::State* state = nullptr;
  bool open = false;        // an operation is running
  bool has_agreed = false;  // the ranks have agreed about the next operation

  // Opens the operation, or first the exchange in which the ranks agree about it. True: the operation is open.
  bool begin(const Call& call, bool in_place, const CallPlan* planned = nullptr) {
    if (state->agrees_first() && !std::exchange(has_agreed, true)) {
      state->open_agreement(call, planned != nullptr);
      open = true;
      return false;
    }
    has_agreed = false;
    state->open(call, in_place, planned);
    return open = true;
  }
};

// A call outside of groups and streams.
struct ImmediateCall : Strand {
  const Call* call = nullptr;
  bool in_place = false, begun = false;

  bool open_next() {
    if (begun) return false;
    begun = begin(*call, in_place);
    return true;
  }
};

struct ImmediateSendRecv : Strand {
  const SendRecv* point = nullptr;
  bool begun = false;

  bool open_next() {
    if (std::exchange(begun, true)) return false;
    state->open({point, 1});
    return open = true;
  }
};

// The strands can't be resumed, so all that are running end with the current exception, which one of them has thrown.
template <class S>
[[gnu::cold, noreturn]] void end_strands(std::span<S> strands, const Communicator::State* at_fault) {
  std::exception_ptr told = std::current_exception();
  for (S& s : strands) {
    const bool elsewhere = s.state != at_fault;
    std::exception_ptr of_this = nullptr;
    if (s.open) {
      s.state->failure.tell(std::current_exception(), elsewhere);
      of_this = s.state->fail_open(std::current_exception(), elsewhere);
    } else if (!elsewhere) {
      of_this = s.state->failure.fail_unopened(std::current_exception());
    }
    if (!elsewhere) told = of_this;
  }
  std::rethrow_exception(told);
}

// Runs the strands concurrently to their ends. Reorders them.
template <class S>
void run_strands(std::span<S> strands) {
  std::size_t left = strands.size();
  S* moving = strands.data();
  try {
    for (std::uint32_t idle = 0; left != 0;) {
      bool moved = false;
      for (std::size_t i = 0; i != left;) {
        moving = &strands[i];
        if (moving->open || moving->open_next()) {
          const bool ended = moving->state->move(left == 1, moved);
          moving->open = !ended;
          if (!ended) ++i;
        } else if (i != --left) {
          std::swap(*moving, strands[left]);
        }
      }
      if (moved || left == 0) {
        idle = 0;
        continue;
      }
      // Each communicator has its own doorbell, so with several, sleep only briefly on each in turn.
      moving = &strands[idle % left];
      moving->state->idle(static_cast<std::uint32_t>(idle / left), left == 1 ? longest_idle : brief_idle);
      ++idle;
    }
  } catch (...) {
    end_strands(strands, moving->state);
  }
}

// The same for one strand, which lies on the caller's stack. Every small message takes this path.
template <class S>
void run_alone(S&& strand) {
  try {
    for (bool moved = false; strand.open_next(); strand.open = false) strand.state->move(true, moved);
  } catch (...) {
    end_strands(std::span<S>(&strand, 1), strand.state);
  }
}

}  // namespace trellis::ccl
