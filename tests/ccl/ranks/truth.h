// What a call must give, by the schedule's interpreter and the kernels' arithmetic alone.
#pragma once

#include <cstddef>
#include <vector>

#include "ccl/communicator.h"

namespace trellis::ccl {

// The bytes that a rank puts in: the same wherever they are asked for.
std::vector<std::byte> input_of(const Call&, Rank rank, Rank ranks, std::uint64_t seed);

// The output of one rank. The call is as rank 0 would make it; its pointers do not matter. `choice`: "ring*2".
std::vector<std::vector<std::byte>> outputs_of(const Call&, Rank ranks, bool in_place, const std::string& choice,
                                               std::uint64_t seed, const Config& = {}, std::uint64_t operation = 1);

}  // namespace trellis::ccl
