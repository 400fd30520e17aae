// An event queue for many events at one time. Events of one instant are stored together, so a machine whose ranks run
// in step pays for instants and not for events.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "sim/hardware/time/chunked_lists.h"
#include "sim/hardware/time/event_queue.h"

namespace trellis::sim {

template <class Event>
class BatchedEventQueue {
 public:
  bool empty() const { return instants_.empty(); }
  Time next() const { return instants_.next(); }

  void push(Time time, const Event& event) {
    if (time != time_) find(time);
    rows_.push(event);
  }

  // Fills `events` with some events of the earliest instant. There may be more of that instant: see next().
  Time pop(std::vector<Event>& events) {
    assert(!empty());
    const std::uint32_t row = instants_.pop();
    if (Recent& recent = recent_[slot(instants_.now())]; recent.row == row) recent = {};
    time_ = -1;
    events.clear();
    rows_.take(row, events);
    return instants_.now();
  }

 private:
  static constexpr std::uint32_t recent_bits = 10;
  // Rows that were pushed to recently. An instant whose row was dropped from here gets a second row.
  struct Recent {
    Time time = -1;
    std::uint32_t row = static_cast<std::uint32_t>(-1);
  };

  static std::size_t slot(Time time) {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(time) * 0x9e3779b97f4a7c15U >> (64 - recent_bits));
  }

  void find(Time time) {
    Recent& recent = recent_[slot(time)];
    if (recent.time != time) {
      recent = {time, rows_.add()};
      instants_.push(time, recent.row);
    }
    time_ = time;
    rows_.enter(recent.row);
  }

  EventQueue<std::uint32_t> instants_;  // row numbers
  ChunkedLists<Event> rows_;
  Recent recent_[std::size_t{1} << recent_bits];
  Time time_ = -1;  // of the last push; -1: none since the last pop
};

}  // namespace trellis::sim
