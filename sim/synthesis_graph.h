// Which ranks of a group a transfer can join without passing another rank, and what it takes and keeps busy on its way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/tuner.h"

namespace trellis::sim {

// One thing that a transfer needs for itself: a link, an HBM, a rank's DMA engines.
struct Hold {
  std::uint32_t resource = 0;  // of the graph
  double seconds = 0;          // for a byte
};

struct Edge {
  Rank from = 0, to = 0;                                         // of the group
  std::vector<Hold> holds;                                       // links first
  ResourceId first_link = no_resource, last_link = no_resource;  // of the machine; none within a chip
  double before = 0, after = 0;                                  // seconds, beside the bytes'
  double byte = 0;                                               // seconds for one, at the narrowest place
  double time(double bytes) const { return before + bytes * byte + after; }
};

struct LinkGraph {
  Rank ranks = 0;
  std::uint32_t resources = 0;
  std::vector<Edge> edges;
};

// `backwards`: edges lead against the way that data takes, which is then added to what is there.
LinkGraph link_graph(const Machine&, const Group&, const std::string& era, bool backwards);

}  // namespace trellis::sim
