#include "sim/cluster/workload/chakra.h"

#include "sim/cluster/workload/traces/merge.h"
#include "text/refuse.h"

namespace trellis::sim {

ExecutionGraph read_chakra(std::string_view name, std::span<const ChakraFile> files) {
  if (files.empty()) text::refuse("{}: no file of a rank's", name);
  std::vector<std::vector<ChakraNode>> nodes;
  for (const ChakraFile& file : files) nodes.push_back(read_chakra_nodes(file));
  return graph_of_traces(name, files, std::move(nodes));
}

ExecutionGraph graph_of_traces(std::string_view name, std::span<const ChakraFile> files,
                               std::vector<std::vector<ChakraNode>> nodes) {
  std::vector<ChakraRankClass> actors;
  for (std::size_t r = 0; r < nodes.size(); ++r)
    actors.push_back({.ranks = {static_cast<Rank>(r)}, .nodes = std::move(nodes[r])});
  return merged_traces(name, files, std::move(actors));
}

}  // namespace trellis::sim
