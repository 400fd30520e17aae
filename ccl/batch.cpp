#include "ccl/batch.h"

#include <algorithm>
#include <utility>

namespace trellis::ccl {
namespace {

// A mistake of the caller's is made by every rank alike, and each finds it itself.
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

// By a failure that no call of the program returns. What had ended before keeps its own.
void end(Communicator::Inside& inside, const std::exception_ptr& why) {
  try {
    inside.check_well();
  } catch (...) {
    return;
  }
  inside.fail(why);
  if (!is_found_by_all(why)) inside.transport->mark_aborted();  // else the other ranks wait for what was not begun
}

}  // namespace

void Batch::add(Communicator::Inside& inside, Point&& point, device::Stream* stream) {
  points_.push_back({&inside, point});
  use(stream);
}

void Batch::add(Communicator::Inside& inside, Operation&& operation, device::Stream* stream) {
  operations_.push_back({&inside, std::move(operation)});
  use(stream);
}

void Batch::use(device::Stream* stream) {
  if (stream != nullptr && std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
}

void Batch::forget(const Communicator::Inside* inside) {
  std::erase_if(points_, [&](const auto& one) { return one.inside == inside; });
  std::erase_if(operations_, [&](const auto& one) { return one.inside == inside; });
}

device::Device& Batch::device() const {
  return *(points_.empty() ? operations_.front().inside : points_.front().inside)->device;
}

void Batch::take_turn(Communicator::Inside* inside) {
  if (std::ranges::find(strands_, inside, &Strand::inside) == strands_.end())
    strands_.push_back({.inside = inside, .turn = inside->turns.take()});
}

void Batch::take_turns() {
  for (const auto& one : points_) take_turn(one.inside);
  for (const auto& one : operations_) take_turn(one.inside);
  for (const Strand& s : strands_) {
    own_.clear();
    for (const auto& one : points_)
      if (one.inside == s.inside && one.what.from == one.what.to) own_.push_back(one.what);
    check_own(own_, s.inside->rank());
  }
}

void Batch::hand_to_stream() { on_stream_ = awaited_ = true; }

// What a stream drops, because something before it failed there, the other ranks do all the same.
void Batch::clear() {
  if (std::exchange(awaited_, false)) {
    const auto why = std::make_exception_ptr(
        Aborted("an operation of the communicator was not begun: what its stream held before has failed"));
    for (const Strand& s : strands_) end(*s.inside, why);
  }
  on_stream_ = false;
  for (const Strand& s : strands_) s.inside->turns.done(s.turn);
  strands_.clear();
  points_.clear();
  operations_.clear();
  streams_.clear();
}

bool Batch::open_next(Strand& s) {
  if (!std::exchange(s.has_met_points, true)) {
    std::vector<Point>& gathered = s.inside->gathered;
    gathered.clear();
    for (const auto& [inside, point] : points_)
      if (inside == s.inside) gathered.push_back(point);
    if (!gathered.empty()) {
      s.inside->open(gathered);
      return s.open = true;
    }
  }
  while (s.next != operations_.size()) {
    const auto& [inside, operation] = operations_[s.next++];
    if (inside != s.inside) continue;
    inside->open(operation.call, operation.in_place, operation.planned.get());
    return s.open = true;
  }
  return false;
}

bool Batch::begin_next(Strand& s) {
  try {
    return open_next(s);
  } catch (...) {
    if (on_stream_) end(*s.inside, std::current_exception());
    throw;
  }
}

// The strands can't be picked up again, so all that were under way end with what one of them threw.
void Batch::end_all(const Communicator::Inside* at_fault) {
  for (const Strand& s : strands_) {
    if (!s.open) {
      if (on_stream_ && !over(s)) end(*s.inside, std::current_exception());
      continue;
    }
    if (s.inside == at_fault) s.inside->tell_of_loss(std::current_exception());
    s.inside->fail(std::current_exception());
    s.inside->transport->mark_aborted();
  }
}

void Batch::run() {
  awaited_ = false;
  for (const Strand& s : strands_) s.inside->turns.wait(s.turn);
  if (strands_.size() == 1) {
    while (begin_next(strands_.front())) strands_.front().inside->run();
    return;
  }
  const Communicator::Inside* moving = nullptr;
  try {
    std::uint32_t idle = 0;
    for (std::size_t left = strands_.size(); left != 0;) {
      bool moved = false;
      for (std::size_t i = 0; i != left;) {
        Strand& s = strands_[i];
        moving = s.inside;
        if (!s.open && !begin_next(s)) {
          std::swap(s, strands_[--left]);
          continue;
        }
        moved |= s.inside->executor.move();
        if (!s.inside->executor.done()) {
          ++i;
          continue;
        }
        s.inside->close();
        s.open = false;
        moved = true;
      }
      if (moved) {
        idle = 0;
        continue;
      }
      // Each has its own bell, so of several none may be slept on long: by turns.
      moving = strands_[idle % left].inside;
      strands_[idle % left].inside->idle(idle);
      ++idle;
    }
  } catch (...) {
    end_all(moving);
    throw;
  }
}

}  // namespace trellis::ccl
