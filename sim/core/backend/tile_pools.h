// The tiles of a draft by the declaration that made them, and how many slots each declaration gets: with several, a
// tile can be filled while the one before it is in use (double buffering).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/backend/unscheduled_program.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

inline constexpr std::uint32_t never = ~0U;
inline constexpr std::int64_t psum_unit = 64;  // bytes of a partition

// The first and the last instruction that touch a buffer, as positions in an order of issue.
struct Lifetime {
  std::uint32_t first = never, last = 0;
  bool used() const { return first != never; }
};

std::vector<Lifetime> lifetimes(const NeuronCoreProgram&, std::span<const std::uint32_t> order);

// Tiles of one declaration and one size.
struct TilePool {
  MemorySpace space = MemorySpace::sbuf;
  std::uint8_t core = 0;
  std::int64_t bytes = 0;  // of a partition, rounded up to the allocator's unit
  std::uint32_t tiles = 0;
  std::uint32_t most_live = 0;
  Lifetime span;  // of all its tiles
  std::int32_t example = -1;
};

// The bytes of a partition that a tile takes in PSUM: a power of two if it is smaller than a bank, so that no tile
// crosses the border of two banks; else whole banks.
std::int64_t psum_piece(std::int64_t bytes, const ChipSpec&);

class TilePools {
 public:
  TilePools(const UnscheduledProgram&, const ChipSpec&, std::span<const std::uint32_t> order);

  std::int32_t of(std::size_t buffer) const { return group_of_[buffer]; }  // -1: in HBM, placed, or never used
  const std::vector<TilePool>& groups() const { return groups_; }
  const std::vector<Lifetime>& lives() const { return lives_; }

  // Where each group's slots begin, if that many slots of each group fit; empty if not.
  std::vector<std::int64_t> packed(std::span<const std::uint32_t> slots) const;
  // The number of slots for each group: as many as it has tiles live at once. If there is room, it is raised to
  // `wanted`, and then step by step towards `copies` times the live tiles. If not even the live tiles fit, it is
  // lowered.
  std::vector<std::uint32_t> slots(int copies, std::span<const std::uint32_t> wanted = {}) const;
  std::vector<std::uint32_t> least_slots() const;

 private:
  std::vector<std::uint32_t> fewer(std::vector<std::uint32_t> slots) const;

  struct Fixed {
    MemorySpace space;
    std::uint8_t core;
    std::int64_t first, last;
  };

  const ChipSpec& chip_;
  std::vector<Lifetime> lives_;
  std::vector<std::int32_t> group_of_;
  std::vector<TilePool> groups_;
  std::vector<Fixed> fixed_;  // buffers whose place is given
};

}  // namespace trellis::sim::core
