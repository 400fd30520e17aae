// What bounds know of a schedule without running it: the way between two ranks as one transfer finds it that meets no
// other, and how many bytes a chunk has at least.
#pragma once

#include "sim/price.h"

namespace trellis::sim {

struct LoneWay {
  Time latency = 0;
  double rate = 0;    // bytes a second; 0: within a chip
  bool away = false;  // to another host
};

// Between ranks of the machine; `links` is overwritten with what the way goes over.
LoneWay lone_way(const Machine&, Rank from, Rank to, std::vector<ResourceId>& links);
// 0 where some chunks may be empty.
double least_chunk_bytes(const schedule::Task&, const PriceOptions&);

}  // namespace trellis::sim
