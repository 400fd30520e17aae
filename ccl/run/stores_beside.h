// How the results of an operation are stored.
#pragma once

#include <cstddef>

#include "ccl/errors.h"
#include "kernels/reduce/copy.h"

namespace trellis::ccl {

// If the data that all ranks touch does not fit the last shared cache, results bypass the cache, which keeps the data
// that is still to be read. `bytes_touched`: by one of the ranks; `cache_bytes` 0: the size is not known.
inline kernels::Stores stores_beside(std::size_t bytes_touched, std::size_t cache_bytes, Rank ranks) {
  const std::size_t share = cache_bytes / static_cast<std::size_t>(ranks);
  return cache_bytes != 0 && bytes_touched > share ? kernels::Stores::streaming : kernels::Stores::cached;
}

}  // namespace trellis::ccl
