// Gives a draft's tiles their places on chip.
#pragma once

#include <string>

#include "sim/core/backend/tile_pools.h"

namespace trellis::sim::core {

// A tile takes the slot of its declaration that was given back longest ago. Where slots by declaration do not fit,
// tiles share all memory, each at the first place that is free. Throws invalid_argument if that does not fit either.
void place_tiles(UnscheduledProgram&, const TilePools&, std::span<const std::uint32_t> slots, const ChipSpec&);

// How many bytes of a partition the live tiles of a space take at most, on the core that takes the most.
std::int64_t most_bytes(const UnscheduledProgram&, const TilePools&, MemorySpace);

}  // namespace trellis::sim::core
