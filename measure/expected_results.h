// The expected results of a call, from the definition under "Bits" in ccl/README.md and the arithmetic of kernels/
// alone.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "schedule/schedule.h"

namespace trellis::measure {

// A rank's input. It depends on the arguments alone, so every rank can compute every other's.
std::vector<std::byte> random_input(const ccl::Call&, ccl::Rank rank, ccl::Rank ranks, std::uint64_t seed);

// The schedule by which a call is done. `choice`: "ring channels=2".
schedule::Schedule schedule_of(const ccl::Call&, ccl::Rank ranks, bool in_place, const std::string& choice);

// Whether the interpreter can follow the schedule. It holds each chunk of each rank; a schedule file may have millions.
bool interpretable(const schedule::Schedule&);

// Every rank's output for random_input(). `calls`: those of all ranks, which differ in all_to_all_v alone; their
// pointers are ignored.
std::vector<std::vector<std::byte>> true_outputs(const schedule::Schedule&, std::span<const ccl::Call> calls,
                                                 std::uint64_t seed, const ccl::Config& = {},
                                                 std::uint64_t operation = 1);

}  // namespace trellis::measure
