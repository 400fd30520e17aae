// Joins what ranks' traces say of one exchange, and writes all of it down as a graph.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sim/cluster/workload/chakra.h"

namespace trellis::sim {

// What meets in collectives of one process group, or in messages from one rank to another; of alike ranks, in those of
// all their groups.
struct ChakraMeeting {
  std::vector<std::vector<Rank>> groups =
      {};                  // of a message: its sender and its receiver; none: one group of all ranks
  std::size_t actors = 0;  // that come to a collective
};

// Ranks that do the same to parts of their own: what they do, written down once.
struct ChakraActor {
  static constexpr std::uint32_t no_meeting = std::numeric_limits<std::uint32_t>::max();
  std::vector<Rank> ranks;
  std::vector<ChakraNode> nodes;
  std::vector<std::uint32_t> meetings = {};  // by node
};

// Actors by their lowest ranks. Without meetings each rank is an actor, and its nodes say what meets. `files`: of each
// rank.
ExecutionGraph merged_traces(std::string_view name, std::span<const ChakraFile> files, std::vector<ChakraActor>,
                             std::vector<ChakraMeeting> meetings = {});

}  // namespace trellis::sim
