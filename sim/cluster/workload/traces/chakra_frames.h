// The messages that a Chakra trace is made of: its metadata, then its nodes.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/cluster/workload/chakra.h"

namespace trellis::sim {

struct ChakraFrame {
  std::size_t begin = 0, end = 0;
};

// Throws invalid_argument, as read_chakra_nodes does.
void find_frames(const ChakraFile&, std::vector<ChakraFrame>&);
ChakraNode read_node(const ChakraFile&, ChakraFrame);

}  // namespace trellis::sim
