// Layout of a lane in shared memory: a ring of cells, each for a message or a piece of one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace trellis::ccl {

// Where a cell's message, or piece of one, is.
enum class Carried : std::uint16_t {
  state,    // in the cell itself
  in_slot,  // in the cell's slot
  window,   // in the sender's device memory: `where` is an offset in its window
  address,  // in the sender's memory, at address `where`
};

// Two cache lines that are fetched together. The sender writes it, `number` last: one more than the cell's position in
// the lane's sequence.
struct alignas(128) LaneCell {
  std::atomic<std::uint32_t> number;
  std::uint32_t mark;
  std::uint32_t bytes;  // of this piece; unused if the message is in the sender's memory
  Carried carried;
  std::uint16_t last;  // the message ends with this cell
  static constexpr std::size_t room = 112;
  static constexpr std::size_t beside = 48;  // bytes of data in the same cache line as `number`
  struct InSender {
    std::uint64_t where;
    std::uint64_t size;
  };
  union {
    std::byte state[room];
    InSender lies;
  };
};
static_assert(sizeof(LaneCell) == 128);
inline constexpr std::uint32_t ring_cells = 8;

struct alignas(128) Ring {
  std::atomic<std::uint32_t> taken;  // number of cells that the receiver has finished
  LaneCell cells[ring_cells];
};

}  // namespace trellis::ccl
