// What lower bounds know of a schedule without a run: the route of one transfer between two ranks when nothing else
// moves, and the least size of a chunk.
#pragma once

#include "sim/cluster/price/price.h"

namespace trellis::sim {

struct UncontendedRoute {
  Time latency = 0;
  double rate = 0;    // bytes a second; 0: within a chip
  bool away = false;  // to another host
};

// From rank to rank of the machine. `links` is overwritten with the links of the route.
UncontendedRoute uncontended_route(const Machine&, Rank from, Rank to, std::vector<ResourceId>& links);
// In bytes; 0 if some chunks may be empty.
double least_chunk_bytes(const schedule::Task&, const PriceOptions&);

}  // namespace trellis::sim
