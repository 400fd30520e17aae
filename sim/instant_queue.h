// What happens next where much happens at once: events of one instant lie together, so that machines whose ranks run in
// step pay for instants and not for events.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

#include "sim/event_queue.h"

namespace trellis::sim {

template <class Event>
class InstantQueue {
 public:
  InstantQueue() = default;
  InstantQueue(const InstantQueue&) = delete;
  InstantQueue& operator=(const InstantQueue&) = delete;

  bool empty() const { return instants_.empty(); }
  Time next() const { return instants_.next(); }

  void push(Time time, const Event& event) {
    if (time != time_) find(time);
    if (at_ == end_) grow();
    *at_++ = event;
  }

  // Makes `row` events of the earliest instant. There may be more of that instant: see next().
  Time pop(std::vector<Event>& events) {
    assert(!empty());
    leave();
    const std::uint32_t number = instants_.pop();
    if (Recent& recent = recent_[slot(instants_.now())]; recent.row == number) recent = {};
    time_ = -1;
    events.clear();
    const Row& row = rows_[number];
    std::uint32_t kind = 0;
    for (std::uint32_t at = row.first; at != none; kind = std::min(kind + 1, kinds - 1)) {
      Chunks& chunks = chunks_[kind];
      const auto begin = chunks.events.begin() + (std::ptrdiff_t{at} << shift(kind));
      const std::uint32_t next = chunks.next[at];
      events.insert(events.end(), begin, begin + (next == none ? row.used : size(kind)));
      chunks.free.push_back(at);
      at = next;
    }
    free_rows_.push_back(number);
    return instants_.now();
  }

 private:
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  static constexpr std::uint32_t recent_bits = 10;
  // A row's events lie in chunks of 4, 8, 16 and so on.
  static constexpr std::uint32_t kinds = 16;
  static constexpr std::uint32_t shift(std::uint32_t kind) { return kind + 2; }
  static constexpr std::uint32_t size(std::uint32_t kind) { return 1U << shift(kind); }
  struct Chunks {
    std::vector<Event> events;
    std::vector<std::uint32_t> next, free;
  };
  struct Row {
    std::uint32_t first = none, last = none;  // chunks
    std::uint32_t kind = 0, used = 0;         // of the last
  };
  // Rows that were pushed to of late. One that is forgotten is not looked for: a second one is begun.
  struct Recent {
    Time time = -1;
    std::uint32_t row = none;
  };

  static std::size_t slot(Time time) {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(time) * 0x9e3779b97f4a7c15U >> (64 - recent_bits));
  }

  // Pushing goes on at the row of this time.
  void find(Time time) {
    leave();
    Recent& recent = recent_[slot(time)];
    if (recent.time != time) recent = {time, new_row(time)};
    time_ = time, row_ = recent.row;
    enter();
  }
  void leave() {
    if (time_ >= 0) rows_[row_].used = static_cast<std::uint32_t>(at_ - begin_);
  }
  void enter() {
    const Row& row = rows_[row_];
    begin_ = chunks_[row.kind].events.data() + (std::size_t{row.last} << shift(row.kind));
    at_ = begin_ + row.used, end_ = begin_ + size(row.kind);
  }
  void grow() {
    Row& row = rows_[row_];
    const std::uint32_t kind = std::min(row.kind + 1, kinds - 1), fresh = take_chunk(kind);
    chunks_[row.kind].next[row.last] = fresh;
    row.last = fresh, row.kind = kind, row.used = 0;
    enter();
  }

  std::uint32_t new_row(Time time) {
    if (free_rows_.empty()) {
      free_rows_.push_back(static_cast<std::uint32_t>(rows_.size()));
      rows_.emplace_back();
    }
    const std::uint32_t row = free_rows_.back();
    free_rows_.pop_back();
    const std::uint32_t chunk = take_chunk(0);
    rows_[row] = {chunk, chunk};
    instants_.push(time, row);
    return row;
  }

  std::uint32_t take_chunk(std::uint32_t kind) {
    Chunks& chunks = chunks_[kind];
    if (chunks.free.empty()) {
      chunks.free.push_back(static_cast<std::uint32_t>(chunks.next.size()));
      chunks.next.push_back(none);
      chunks.events.resize(chunks.events.size() + size(kind));
    }
    const std::uint32_t chunk = chunks.free.back();
    chunks.free.pop_back();
    chunks.next[chunk] = none;
    return chunk;
  }

  EventQueue<std::uint32_t> instants_;  // rows
  std::vector<Row> rows_;
  Chunks chunks_[kinds];
  std::vector<std::uint32_t> free_rows_;
  Recent recent_[std::size_t{1} << recent_bits];
  Time time_ = -1;  // that was pushed to last; -1: none
  std::uint32_t row_ = none;
  Event *begin_ = nullptr, *at_ = nullptr, *end_ = nullptr;  // in its last chunk
};

}  // namespace trellis::sim
