// Merges the traces of all ranks into one graph: matches the nodes with which several ranks describe one exchange.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sim/cluster/workload/chakra.h"

namespace trellis::sim {

// Ranks that exchange data: the members of one process group, or a message's sender and receiver. Where ranks that do
// the same form one class, it holds the groups of all ranks of the class.
struct ChakraCommunicator {
  std::vector<std::vector<Rank>> groups =
      {};                  // of a message: its sender and its receiver; none: one group of all ranks
  std::size_t actors = 0;  // how many rank classes take part in a collective
};

// Ranks that do the same, each in groups of its own, and the nodes of their traces, stored once.
struct ChakraRankClass {
  static constexpr std::uint32_t no_meeting = std::numeric_limits<std::uint32_t>::max();
  std::vector<Rank> ranks;
  std::vector<ChakraNode> nodes;
  std::vector<std::uint32_t> meetings = {};  // by node: the index of its communicator
};

// Rank classes are ordered by their lowest ranks. If `meetings` is empty, each class is a single rank, and who
// exchanges data is found from the process groups, senders and receivers that the nodes name. `files`: one for each
// rank.
ExecutionGraph merged_traces(std::string_view name, std::span<const ChakraFile> files, std::vector<ChakraRankClass>,
                             std::vector<ChakraCommunicator> meetings = {});

}  // namespace trellis::sim
