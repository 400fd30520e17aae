// On which cores of their host the ranks of a communicator run.
#pragma once

#include <cstddef>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl {

// The same on all ranks: made of what every rank published before it joined.
struct RankPlaces {
  int cores = 0;                  // physical cores that the ranks may run on and keep busy, together; 0: not known
  int threads = 0;                // the same of hardware threads; fewer than cores: not known
  std::vector<int> sockets = {};  // by rank; -1: it may run on several
  std::size_t l2_bytes = 0;       // of a core; as rank 0 sees it
  std::size_t l3_bytes = 0;       // of the cores that share one; 0: there is none, or it is not known
  bool operator==(const RankPlaces&) const = default;
};

}  // namespace trellis::ccl
