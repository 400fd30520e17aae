// A machine and the ranks on it: as text, as JSON, as a picture.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/topo_machine.h"

namespace trellis::tools {

struct PlacedRanks {
  int ranks = 0;  // 0: none were asked for
  Share share = Share::one;
  std::vector<std::vector<int>> threads = {};  // of each; empty: they are not kept anywhere

  int rank_on(const Part&) const;  // the rank that has a thread of this part, -1: none
  std::string sentence() const;    // "2 ranks, a core each"
};

// What the part says of itself: "NUMA node 0, 19.5 GiB", "L3, 32 MiB", "core 0".
std::string words_for(const Part&);

// A part that holds one part only stands in one line, or box, with that one: the first of them to the last.
std::vector<const Part*> chain_from(const Part&);

std::string topo_text(const TopoMachine&, const PlacedRanks&);
std::string topo_json(const TopoMachine&, const PlacedRanks&);
std::string topo_picture(const TopoMachine&, const PlacedRanks&);  // SVG

}  // namespace trellis::tools
