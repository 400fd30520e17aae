// A host and the ranks on it: as text, as JSON, as a picture.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/host_machine.h"

namespace trellis::tools {

struct PlacedRanks {
  int ranks = 0;  // 0: none
  launch::CoreAllocationPolicy share = launch::CoreAllocationPolicy::one;
  std::vector<std::vector<int>> threads = {};  // of each rank; empty: ranks are not pinned

  int rank_on(const launch::TopoObject&) const;  // the rank that has a thread of this object; -1: none
  std::string sentence() const;                  // "2 ranks, a core each"
};

// A short description: "NUMA node 0, 19.5 GiB", "L3, 32 MiB", "core 0".
std::string words_for(const launch::TopoObject&);

// An object that contains only one other shares a line, or a box, with it. Returns such a chain, outermost first.
std::vector<const launch::TopoObject*> chain_from(const launch::TopoObject&);

std::string topo_text(const launch::TopoMachine&, const PlacedRanks&);
std::string topo_json(const launch::TopoMachine&, const PlacedRanks&);
std::string topo_picture(const launch::TopoMachine&, const PlacedRanks&);  // SVG

}  // namespace trellis::tools
