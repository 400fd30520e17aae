// The expected results of a call, from the definition under "Bits" in ccl/README.md and the arithmetic of kernels/
// alone.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ccl/communicator.h"

namespace trellis::measure {

// A rank's input, the same wherever it is asked for.
std::vector<std::byte> random_input(const ccl::Call&, ccl::Rank rank, ccl::Rank ranks, std::uint64_t seed);

// Whether the interpreter can follow the schedule: it holds each chunk of each rank, and a file may have millions.
bool interpretable(const ccl::Call&, ccl::Rank ranks, bool in_place, const std::string& choice);

// Every rank's output for random_input(). `calls`: those of all ranks, which differ in all_to_all_v alone; their
// pointers are ignored. `choice`: "ring*2".
std::vector<std::vector<std::byte>> true_outputs(std::span<const ccl::Call> calls, bool in_place,
                                                 const std::string& choice, std::uint64_t seed, const ccl::Config& = {},
                                                 std::uint64_t operation = 1);

}  // namespace trellis::measure
