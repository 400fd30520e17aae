// Which sizes of a collective's buffers belong together.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ccl/call.h"

namespace trellis::ccl {

// Throws invalid_argument unless the larger buffer is one block of the smaller for each rank.
void expect_blocks(Collective, std::string_view larger, std::size_t whole, std::size_t block, Rank ranks);
// A block of a buffer that has one for each rank. Throws invalid_argument where they do not come out even.
std::size_t block_of(Collective, std::size_t whole, Rank ranks);
void expect_as_many(Collective, std::size_t in, std::size_t out);  // throws invalid_argument
// Throws invalid_argument unless there is a count for each rank, and together they are `elements`.
void expect_counts(Collective, std::string_view buffer, std::span<const std::size_t>, std::size_t elements, Rank ranks);

// The same of the larger buffer, and throws unless the smaller one has this rank's count.
void expect_own(Collective, std::span<const std::size_t> counts, Rank rank, std::size_t smaller, std::size_t larger,
                Rank ranks);

}  // namespace trellis::ccl
