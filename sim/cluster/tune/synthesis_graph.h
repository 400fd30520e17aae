// The graph that synthesis works on: which ranks a transfer can connect without passing another rank, and the time and
// resources that it takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/choose/pricer.h"

namespace trellis::sim {

// A resource that a transfer occupies exclusively: a link, an HBM, a rank's DMA engines.
struct ResourceOccupancy {
  std::uint32_t resource = 0;  // index in the graph
  double seconds = 0;          // a byte
};

struct Edge {
  Rank from = 0, to = 0;                                         // ranks of the group
  std::vector<ResourceOccupancy> holds;                          // links first
  ResourceId first_link = no_resource, last_link = no_resource;  // of the machine; no_resource within a chip
  double before = 0, after = 0;                                  // seconds before and after the bytes move
  double byte = 0;                                               // seconds a byte, at the bottleneck
  double time(double bytes) const { return before + bytes * byte + after; }
};

struct LinkGraph {
  Rank ranks = 0;
  std::uint32_t resources = 0;
  std::vector<Edge> edges;
};

// `backwards`: edges run against the direction of the data, and the data is added at its destination.
LinkGraph link_graph(const Machine&, const RankGroup&, const std::string& era, bool backwards);

}  // namespace trellis::sim
