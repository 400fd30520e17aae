// Lists of events, called rows, that grow side by side in chunks of 4, 8, 16 and so on: a short row takes little
// memory, a long one is mostly contiguous.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/hardware/time/index_allocator.h"

namespace trellis::sim {

template <class Event>
class ChunkedLists {
 public:
  ChunkedLists() = default;
  ChunkedLists(const ChunkedLists&) = delete;  // it has pointers into itself

  std::uint32_t add() {
    const std::uint32_t row = free_.take();
    if (row == rows_.size()) rows_.emplace_back();
    const std::uint32_t chunk = take_chunk(0);
    rows_[row] = {chunk, chunk};
    return row;
  }

  // Later pushes go to this row.
  void enter(std::uint32_t row) {
    leave();
    row_ = row;
    point();
  }

  void push(const Event& event) {
    if (at_ == end_) grow();
    *at_++ = event;
  }

  // Moves a row's events to the end of `events`. Another row must be entered before the next push.
  void take(std::uint32_t number, std::vector<Event>& events) {
    leave();
    row_ = none;
    const Row& row = rows_[number];
    std::uint32_t kind = 0;
    for (std::uint32_t at = row.first; at != none; kind = after(kind)) {
      Chunks& chunks = chunks_[kind];
      const Event* begin = chunks.place(at, kind);
      const std::uint32_t next = chunks.next[at];
      events.insert(events.end(), begin, begin + (next == none ? row.used : size(kind)));
      chunks.free.give_back(at);
      at = next;
    }
    free_.give_back(number);
  }

 private:
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1), kinds = 16;
  static constexpr std::uint32_t size(std::uint32_t kind) { return 4U << kind; }
  static constexpr std::uint32_t after(std::uint32_t kind) { return std::min(kind + 1, kinds - 1); }
  struct Chunks {
    std::vector<Event> events;
    std::vector<std::uint32_t> next;
    IndexAllocator free;
    Event* place(std::uint32_t chunk, std::uint32_t kind) { return events.data() + (std::size_t{chunk} << (kind + 2)); }
  };
  struct Row {
    std::uint32_t first = none, last = none;  // chunks
    std::uint32_t kind = 0, used = 0;         // of the last chunk
  };

  void leave() {
    if (row_ != none) rows_[row_].used = static_cast<std::uint32_t>(at_ - begin_);
  }

  void point() {
    const Row& row = rows_[row_];
    begin_ = chunks_[row.kind].place(row.last, row.kind);
    at_ = begin_ + row.used, end_ = begin_ + size(row.kind);
  }

  void grow() {
    Row& row = rows_[row_];
    const std::uint32_t kind = after(row.kind), fresh = take_chunk(kind);
    chunks_[row.kind].next[row.last] = fresh;
    row.last = fresh, row.kind = kind, row.used = 0;
    point();
  }

  std::uint32_t take_chunk(std::uint32_t kind) {
    Chunks& chunks = chunks_[kind];
    const std::uint32_t chunk = chunks.free.take();
    if (chunk == chunks.next.size()) {
      chunks.next.push_back(none);
      chunks.events.resize(chunks.events.size() + size(kind));
    }
    chunks.next[chunk] = none;
    return chunk;
  }

  std::vector<Row> rows_;
  Chunks chunks_[kinds];
  IndexAllocator free_;
  std::uint32_t row_ = none;                                 // the row that is pushed to
  Event *begin_ = nullptr, *at_ = nullptr, *end_ = nullptr;  // in its last chunk
};

}  // namespace trellis::sim
