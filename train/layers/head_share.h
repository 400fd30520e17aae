// Which heads of attention a tensor rank has. Heads that do not divide by the ranks are shared out unevenly, the first
// ranks having one more; no rank computes heads that do not exist.
#pragma once

#include <cstddef>

#include "train/layers/attention.h"
#include "train/mesh/mesh.h"

namespace trellis::train {

struct HeadShare {
  std::size_t first = 0, count = 0;        // of the heads of queries
  std::size_t kv_first = 0, kv_count = 0;  // of the heads of keys and values
  int copies = 1;                          // so many ranks have these heads of keys and values
  bool first_copy = true;                  // this rank is the first of them
};

// `place`: the rank's place on the tensor axis. Mesh::kv_groups has the ranks with copies of the same heads. Throws
// invalid_argument where a rank would have no head, or where ranks outnumber kv_heads and are no multiple of them.
HeadShare head_share(HeadCounts, Rank tensor, Rank place, Wiring);

}  // namespace trellis::train
