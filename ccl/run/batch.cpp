#include "ccl/run/batch.h"

#include <algorithm>
#include <utility>

namespace trellis::ccl {
namespace {

// Every rank makes the same invalid call, so each finds the caller's mistake itself.
bool is_found_by_all(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const Mismatch&) {
    return false;
  } catch (const std::invalid_argument&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Ends the communicator with a failure that no call of the program returns. If it has failed already, it keeps that
// failure.
void end(Communicator::State& state, const std::exception_ptr& why) {
  try {
    state.check_well();
  } catch (...) {
    return;
  }
  state.fail(why);
  if (!is_found_by_all(why)) state.transport->mark_aborted();  // else other ranks wait for what never starts
}

}  // namespace

void Batch::add(Communicator::State& state, SendRecv&& point, device::Stream* stream) {
  send_recvs_.push_back({&state, point});
  use(stream);
}

void Batch::add(Communicator::State& state, Operation&& operation, device::Stream* stream) {
  operations_.push_back({&state, std::move(operation)});
  use(stream);
}

void Batch::use(device::Stream* stream) {
  if (stream != nullptr && std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
}

void Batch::forget(const Communicator::State* state) {
  std::erase_if(send_recvs_, [&](const auto& one) { return one.state == state; });
  std::erase_if(operations_, [&](const auto& one) { return one.state == state; });
}

device::Device& Batch::device() const {
  return *(send_recvs_.empty() ? operations_.front().state : send_recvs_.front().state)->device;
}

void Batch::take_turn(Communicator::State* state) {
  if (std::ranges::find(strands_, state, &Strand::state) == strands_.end())
    strands_.push_back({.state = state, .turn = state->tickets.take()});
}

void Batch::take_turns() {
  for (const auto& one : send_recvs_) take_turn(one.state);
  for (const auto& one : operations_) take_turn(one.state);
  for (const Strand& s : strands_) {
    own_.clear();
    for (const auto& one : send_recvs_)
      if (one.state == s.state && one.what.from == one.what.to) own_.push_back(one.what);
    check_own(own_, s.state->rank());
  }
}

void Batch::hand_to_stream() { on_stream_ = awaited_ = true; }

// Work that a stream drops after an earlier failure still runs on the other ranks.
void Batch::clear() {
  if (std::exchange(awaited_, false)) {
    const auto why = std::make_exception_ptr(
        Aborted("an operation of the communicator was not begun: what its stream held before has failed"));
    for (const Strand& s : strands_) end(*s.state, why);
  }
  on_stream_ = false;
  for (const Strand& s : strands_) s.state->tickets.done(s.turn);
  strands_.clear();
  send_recvs_.clear();
  operations_.clear();
  streams_.clear();
}

bool Batch::open_next(Strand& s) {
  if (!std::exchange(s.has_met_points, true)) {
    std::vector<SendRecv>& gathered = s.state->gathered;
    gathered.clear();
    for (const auto& [state, point] : send_recvs_)
      if (state == s.state) gathered.push_back(point);
    if (!gathered.empty()) {
      s.state->open(gathered);
      return s.open = true;
    }
  }
  while (s.next != operations_.size()) {
    const auto& [state, operation] = operations_[s.next];
    if (state == s.state && state->agrees_first() && !std::exchange(s.has_agreed, true)) {
      state->open_agreement(operation.call, operation.planned != nullptr);
      return s.open = true;
    }
    ++s.next;
    if (state != s.state) continue;
    s.has_agreed = false;
    state->open(operation.call, operation.in_place, operation.planned.get());
    return s.open = true;
  }
  return false;
}

bool Batch::begin_next(Strand& s) {
  try {
    return open_next(s);
  } catch (...) {
    if (on_stream_) end(*s.state, std::current_exception());
    throw;
  }
}

// The strands cannot be resumed, so all that were running end with the exception of one.
void Batch::end_all(const Communicator::State* at_fault) {
  for (const Strand& s : strands_) {
    if (!s.open) {
      if (on_stream_ && !over(s)) end(*s.state, std::current_exception());
      continue;
    }
    if (s.state == at_fault) s.state->tell_of_loss(std::current_exception());
    s.state->fail_open(std::current_exception(), s.state != at_fault);
    s.state->transport->mark_aborted();
  }
}

void Batch::run() {
  awaited_ = false;
  for (const Strand& s : strands_) s.state->tickets.wait(s.turn);
  if (strands_.size() == 1) {
    while (begin_next(strands_.front())) strands_.front().state->run();
    return;
  }
  const Communicator::State* moving = nullptr;
  try {
    std::uint32_t idle = 0;
    for (std::size_t left = strands_.size(); left != 0;) {
      bool moved = false;
      for (std::size_t i = 0; i != left;) {
        Strand& s = strands_[i];
        moving = s.state;
        if (!s.open && !begin_next(s)) {
          std::swap(s, strands_[--left]);
          continue;
        }
        moved |= s.state->executor.move();
        if (!s.state->executor.done()) {
          ++i;
          continue;
        }
        s.state->close();
        s.open = false;
        moved = true;
      }
      if (moved) {
        idle = 0;
        continue;
      }
      // Each communicator has its own doorbell, so with several, sleep only briefly on each in turn.
      moving = strands_[idle % left].state;
      strands_[idle % left].state->idle(idle);
      ++idle;
    }
  } catch (...) {
    end_all(moving);
    throw;
  }
}

}  // namespace trellis::ccl
