// On which cores of their host the ranks of a communicator run.
#pragma once

#include <cstddef>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl {

// The same on all ranks: made of what every rank published before it joined.
struct RankCores {
  int cores = 0;                  // physical cores that the ranks may run on and keep busy, together; 0: not known
  int threads = 0;                // the same of hardware threads; fewer than cores: not known
  std::vector<int> sockets = {};  // by rank; -1: it may run on several
  std::size_t l2_bytes = 0;       // of a core; as rank 0 sees it
  std::size_t l3_bytes = 0;       // of all L3 caches that the ranks use at a time; 0: there are none, or not known
  int l3_caches = 0;              // their number: that of the ranks at most
  bool operator==(const RankCores&) const = default;
};

// The L3 caches of this host that ranks of the communicator share.
struct SharedCaches {
  std::size_t bytes = 0;  // of all of them; 0: there are none, or not known
  Rank ranks = 1;
};

}  // namespace trellis::ccl
