// What happens next where much happens at once: events of one instant lie together, so that machines whose ranks run in
// step pay for instants and not for events.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/units.h"

namespace trellis::sim {

template <class Event>
class InstantQueue {
 public:
  bool empty() const { return heap_.empty(); }
  Time next() const { return heap_.empty() ? forever : heap_.front().time; }

  void push(Time time, const Event& event) {
    Recent& recent = recent_[slot(time)];
    if (recent.time != time) recent = {time, new_row(time)};
    Row& row = rows_[recent.row];
    Block* last = &blocks_[row.last];
    if (last->count == block_size) {
      const std::uint32_t fresh = take_block();
      blocks_[row.last].next = fresh;
      row.last = fresh;
      last = &blocks_[fresh];
    }
    last->events[last->count++] = event;
  }

  // Makes `row` events of the earliest instant. There may be more of that instant: see next().
  Time pop(std::vector<Event>& row) {
    assert(!empty());
    const Node first = heap_.front();
    std::ranges::pop_heap(heap_, std::greater<>());
    heap_.pop_back();
    if (Recent& recent = recent_[slot(first.time)]; recent.row == first.row) recent = {};
    row.clear();
    for (std::uint32_t at = rows_[first.row].first; at != none;) {
      const Block& block = blocks_[at];
      row.insert(row.end(), block.events, block.events + block.count);
      free_blocks_.push_back(at);
      at = block.next;
    }
    free_rows_.push_back(first.row);
    return first.time;
  }

 private:
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  static constexpr std::uint32_t block_size = 8, recent_bits = 10;
  struct Block {
    Event events[block_size];
    std::uint32_t count = 0, next = none;
  };
  struct Row {
    std::uint32_t first = none, last = none;
  };
  struct Node {
    Time time = 0;
    std::uint64_t order = 0;
    std::uint32_t row = 0;
    bool operator>(const Node& o) const { return time != o.time ? time > o.time : order > o.order; }
  };
  // Rows that were pushed to of late. One that is forgotten is not looked for: a second one is begun.
  struct Recent {
    Time time = -1;
    std::uint32_t row = none;
  };

  static std::size_t slot(Time time) {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(time) * 0x9e3779b97f4a7c15U >> (64 - recent_bits));
  }

  std::uint32_t new_row(Time time) {
    const std::uint32_t block = take_block();
    if (free_rows_.empty()) {
      free_rows_.push_back(static_cast<std::uint32_t>(rows_.size()));
      rows_.emplace_back();
    }
    const std::uint32_t row = free_rows_.back();
    free_rows_.pop_back();
    rows_[row] = {block, block};
    heap_.push_back({time, order_++, row});
    std::ranges::push_heap(heap_, std::greater<>());
    return row;
  }

  std::uint32_t take_block() {
    if (free_blocks_.empty()) {
      free_blocks_.push_back(static_cast<std::uint32_t>(blocks_.size()));
      blocks_.emplace_back();
    }
    const std::uint32_t block = free_blocks_.back();
    free_blocks_.pop_back();
    blocks_[block].count = 0, blocks_[block].next = none;
    return block;
  }

  std::vector<Node> heap_;
  std::vector<Row> rows_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_rows_, free_blocks_;
  std::uint64_t order_ = 0;
  Recent recent_[std::size_t{1} << recent_bits];
};

}  // namespace trellis::sim
