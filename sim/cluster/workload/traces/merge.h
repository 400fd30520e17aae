// Joins what ranks' traces say of one exchange, and writes all of it down as a graph.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sim/cluster/workload/chakra.h"

namespace trellis::sim {

// The ranks that exchange data: those of one process group, or a message's two ends. If ranks that do the same form one
// actor, a meeting has all groups of such ranks.
struct ChakraCommunicator {
  std::vector<std::vector<Rank>> groups =
      {};                  // of a message: its sender and its receiver; none: one group of all ranks
  std::size_t actors = 0;  // how many take part in a collective
};

// Ranks that do the same in groups of their own, and what they do, written down once.
struct ChakraRankClass {
  static constexpr std::uint32_t no_meeting = std::numeric_limits<std::uint32_t>::max();
  std::vector<Rank> ranks;
  std::vector<ChakraNode> nodes;
  std::vector<std::uint32_t> meetings = {};  // by node
};

// The actors are ordered by their lowest ranks. Without meetings, each rank is an actor, and meetings are found from
// groups and ends that the nodes name. `files`: one for each rank.
ExecutionGraph merged_traces(std::string_view name, std::span<const ChakraFile> files, std::vector<ChakraRankClass>,
                             std::vector<ChakraCommunicator> meetings = {});

}  // namespace trellis::sim
