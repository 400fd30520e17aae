#include "ccl/group.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

namespace trellis::ccl {
namespace {

using Inside = Communicator::Inside;

// Of this thread.
struct Noted {
  int depth = 0;
  std::vector<Issued> issued;
};
thread_local Noted noted;

// A communicator's operations, one of which is under way.
struct Strand {
  Inside* inside;
  std::deque<Operation> left;
  bool open = false;

  bool move() {
    if (!open) {
      inside->open(left.front());
      open = true;
    }
    const bool moved = inside->executor.move();
    if (!inside->executor.done()) return moved;
    inside->close();
    open = false;
    left.pop_front();
    return true;
  }
};

std::vector<Strand> strands_of(std::vector<Issued> issued) {
  std::vector<Strand> strands;
  for (Issued& one : issued) {
    auto found = std::ranges::find(strands, one.inside, &Strand::inside);
    if (found == strands.end()) found = strands.insert(strands.end(), {one.inside, {}});
    if (one.operation.points.empty()) {
      found->left.push_back(std::move(one.operation));
      continue;
    }
    if (found->left.empty() || found->left.front().points.empty()) found->left.emplace_front();
    auto& points = found->left.front().points;
    points.insert(points.end(), one.operation.points.begin(), one.operation.points.end());
  }
  return strands;
}

// The strands can't be picked up again, so all that were under way end with what one of them threw.
void end_all(std::vector<Strand>& strands) {
  for (Strand& s : strands) {
    if (!s.open) continue;
    s.inside->fail(std::current_exception());
    if (strands.size() > 1) s.inside->transport->mark_aborted();
  }
}

using Turns_ = std::vector<std::unique_ptr<Turns::Turn>>;

Turns_ turns_for(const std::vector<Issued>& issued) {
  std::vector<Inside*> seen;
  Turns_ turns;
  for (const Issued& one : issued) {
    if (std::ranges::find(seen, one.inside) != seen.end()) continue;
    seen.push_back(one.inside);
    turns.push_back(std::make_unique<Turns::Turn>(one.inside->turns));
  }
  return turns;
}

// What a group mostly is: sends and receives of one communicator, here and now. False: it is something else.
bool run_points(std::vector<Issued>& issued) {
  Inside* const inside = issued.front().inside;
  for (const Issued& one : issued)
    if (one.inside != inside || one.stream != nullptr || one.operation.points.size() != 1) return false;
  std::vector<Call> points;
  points.reserve(issued.size());
  for (Issued& one : issued) points.push_back(std::move(one.operation.points.front()));
  Turns::Turn turn(inside->turns);
  turn.wait();
  inside->open(points);
  inside->run();
  return true;
}

// A stream that takes part waits for the one that does the work, and that one for what it held before.
void submit(std::vector<Issued> issued) {
  device::Stream* stream = nullptr;
  for (const Issued& one : issued)
    if (stream == nullptr) stream = one.stream;
  auto turns = turns_for(issued);
  if (stream == nullptr) {
    for (const auto& turn : turns) turn->wait();
    return run_together(std::move(issued));
  }
  std::vector<device::Stream*> others;
  for (const Issued& one : issued)
    if (one.stream != nullptr && one.stream != stream && std::ranges::find(others, one.stream) == others.end())
      others.push_back(one.stream);
  device::Device& device = *issued.front().inside->device;
  for (device::Stream* other : others) {
    const auto before = device.event();
    before->record(other);
    before->wait(stream);
  }
  stream->submit([issued = std::move(issued), turns = std::make_shared<Turns_>(std::move(turns))]() mutable {
    for (const auto& turn : *turns) turn->wait();
    run_together(std::move(issued));
    turns->clear();
  });
  const auto after = device.event();
  after->record(stream);
  for (device::Stream* other : others) after->wait(other);
}

}  // namespace

void run_together(std::vector<Issued> issued) {
  std::vector<Strand> strands = strands_of(std::move(issued));
  try {
    for (std::uint32_t idle = 0; !strands.empty();) {
      bool moved = false;
      for (Strand& s : strands) moved |= s.move();
      std::erase_if(strands, [](const Strand& s) { return s.left.empty(); });
      if (moved) {
        idle = 0;
        continue;
      }
      // Each has its own bell, so none may be slept on long: by turns.
      if (strands.size() == 1)
        strands.front().inside->executor.idle(idle++);
      else
        strands[idle % strands.size()].inside->executor.idle(idle), ++idle;
    }
  } catch (...) {
    end_all(strands);
    throw;
  }
}

Group::Group() { ++noted.depth; }

Group::~Group() {
  if (ended_) return;
  if (--noted.depth == 0) noted.issued.clear();
}

void Group::end() {
  if (std::exchange(ended_, true)) return;
  if (--noted.depth != 0 || noted.issued.empty()) return;
  std::vector<Issued> issued = std::exchange(noted.issued, {});
  if (!run_points(issued)) return submit(std::move(issued));
  issued.clear();
  if (noted.issued.capacity() == 0) noted.issued = std::move(issued);  // room for the next group
}

bool Group::open() { return noted.depth != 0; }

void Group::forget(const Communicator& c) {
  std::erase_if(noted.issued, [&](const Issued& one) { return one.inside == c.inside_.get(); });
}

void Group::issue(Communicator& c, Operation&& operation, device::Stream* stream) {
  Issued one{c.inside_.get(), std::move(operation), stream};
  if (open())
    noted.issued.push_back(std::move(one));
  else
    submit({std::move(one)});
}

}  // namespace trellis::ccl
