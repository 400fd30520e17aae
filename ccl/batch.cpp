#include "ccl/batch.h"

#include <algorithm>
#include <utility>

namespace trellis::ccl {

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
}

void Batch::clear() {
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

// The strands can't be picked up again, so all that were under way end with what one of them threw.
void Batch::end_all(const Communicator::Inside* at_fault) {
  for (const Strand& s : strands_) {
    if (!s.open) continue;
    if (s.inside == at_fault) s.inside->tell_of_loss(std::current_exception());
    s.inside->fail(std::current_exception());
    s.inside->transport->mark_aborted();
  }
}

void Batch::run() {
  for (const Strand& s : strands_) s.inside->turns.wait(s.turn);
  if (strands_.size() == 1) {
    while (open_next(strands_.front())) strands_.front().inside->run();
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
        if (!s.open && !open_next(s)) {
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
