// Calls of every collective along every algorithm, held against the truth bit for bit.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ccl/communicator.h"

namespace trellis::ccl {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// A call, and how it is served.
struct Case {
  Call call = {};
  std::string algorithm = "";
  bool in_place = false;
};

// Sets the type and operator of the call with the number `turn`.
using Kind = std::function<void(Call&, std::size_t turn)>;

// The cases for a number of ranks: each algorithm for each collective that it serves.
std::vector<Case> cases_for(Rank ranks, std::span<const std::size_t> counts, const Kind&);

// Call it on every rank. Throws when a result is wrong, or differs between ranks that should have the same.
void run_case(Communicator&, const Case&, std::uint64_t seed);

// Runs all cases, each algorithm on a communicator of its own. Returns what is wrong; empty: nothing.
std::string run_cases(std::string_view transport, Rank ranks, std::span<const std::size_t> counts, const Kind&,
                      const Config& = {});

}  // namespace trellis::ccl
