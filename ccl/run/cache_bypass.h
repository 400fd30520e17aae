// How the results of an operation are stored.
#pragma once

#include <cstddef>

#include "ccl/transports/rank_cores.h"
#include "kernels/reduce/copy.h"

namespace trellis::ccl {

// If the data that the ranks of a host touch does not fit the last-level caches that they share, results bypass the
// caches, which keep the data that is still to be read. `bytes_touched`: by one of the ranks.
inline kernels::Stores stores_beside(std::size_t bytes_touched, const SharedCaches& caches) {
  const std::size_t share = caches.bytes / static_cast<std::size_t>(caches.ranks);
  return caches.bytes != 0 && bytes_touched > share ? kernels::Stores::streaming : kernels::Stores::cached;
}

}  // namespace trellis::ccl
