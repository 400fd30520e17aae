// Layout of a lane in shared memory: a ring of cells, each for a message or a piece of one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace trellis::ccl {

// Where a cell's message, or piece of one, is.
enum class PayloadLocation : std::uint16_t {
  state,    // in the cell itself
  in_slot,  // in the cell's slot
  window,   // in the sender's device memory: `where` is an offset in its window
  address,  // in the sender's memory, at address `where`
};

// A message, or a piece of one, in its sender's memory.
struct SenderMemoryRange {
  std::uint64_t where;
  std::uint64_t size;
};

// Two cache lines that are fetched together. The sender writes it, `number` last: one more than the cell's position in
// the lane's sequence.
struct alignas(128) LaneCell {
  std::atomic<std::uint32_t> number;
  std::uint32_t mark;
  std::uint32_t bytes;  // of this piece; unused if the message is in the sender's memory
  PayloadLocation carried;
  std::uint16_t last;  // the message ends with this cell
  static constexpr std::size_t room = 112;
  static constexpr std::size_t beside = 48;  // bytes of data in the same cache line as `number`
  union {
    std::byte state[room];
    SenderMemoryRange lies;
  };
};
static_assert(sizeof(LaneCell) == 128);
inline constexpr std::uint32_t ring_cells = 8;

struct alignas(128) Ring {
  std::atomic<std::uint32_t> taken;  // number of cells that the receiver has finished
  LaneCell cells[ring_cells];
};

// What a rank publishes in an all-to-all round: one message for each rank, or one that all of them read. They are in
// the cell where they fit, else in the rank's room for that round. For messages that are read in the sender's memory, a
// SenderMemoryRange is there instead of each.
struct alignas(128) AllToAllCell {
  std::atomic<std::uint32_t> number;  // of the round; stored last
  std::uint32_t mark;
  std::uint32_t stride;     // from one rank's message to the next one's; 0: all ranks read the same message
  PayloadLocation carried;  // window or address: in the sender's memory
  std::uint16_t in_room;
  static constexpr std::size_t room = 496;
  std::byte messages[room];
};
static_assert(sizeof(AllToAllCell) == 512);
inline constexpr std::uint32_t round_cells = 4, round_rooms = 2;  // of a rank, used in turn

// The stride from one rank's message to the next one's, where the longest has so many bytes: messages are packed if all
// fit the cell; otherwise each begins on a cache line of its own.
inline std::size_t round_stride(std::size_t bytes, std::int32_t ranks) {
  constexpr std::size_t aligned = 16, line = 64;
  const std::size_t packed = (bytes + aligned - 1) / aligned * aligned;
  return packed * static_cast<std::size_t>(ranks) <= AllToAllCell::room ? packed : (bytes + line - 1) / line * line;
}

}  // namespace trellis::ccl
