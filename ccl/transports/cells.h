// A lane in shared memory: a ring of cells, each for a message or for a piece of one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace trellis::ccl {

// What a cell's message, or piece of one, is.
enum class Carried : std::uint16_t {
  inside,   // in the cell
  in_slot,  // in the cell's slot
  window,   // where it lies in the sender's device memory: `where` is an offset in its window
  address,  // where it lies in the sender's address space
};

// Two cache lines that are fetched together: written by the sender, `number` last. It is one more than the cell's place
// in the lane's sequence.
struct alignas(128) Cell {
  std::atomic<std::uint32_t> number;
  std::uint32_t mark;
  std::uint32_t bytes;  // of this piece; unused when it lies elsewhere
  Carried carried;
  std::uint16_t last;  // the message ends with it
  static constexpr std::size_t room = 112;
  static constexpr std::size_t beside = 48;  // of these in the line of the number
  union {
    std::byte inside[room];
    struct {
      std::uint64_t where;
      std::uint64_t size;
    } lies;
  };
};
static_assert(sizeof(Cell) == 128);
inline constexpr std::uint32_t ring_cells = 8;

struct alignas(128) Ring {
  std::atomic<std::uint32_t> taken;  // cells that the receiver is done with
  Cell cells[ring_cells];
};

}  // namespace trellis::ccl
