#include "ccl/transports/libfabric/wire/region_key_pool.h"

#include <fmt/format.h>

#include <stdexcept>

namespace trellis::ccl::libfabric {

RegionKeyPool::RegionKeyPool(std::size_t bytes, std::uint64_t first)
    : most_(bytes == 0 || bytes >= sizeof first ? UINT64_MAX : (std::uint64_t{1} << 8 * bytes) - 1),
      next_(first & most_) {}

std::uint64_t RegionKeyPool::take() {
  if (used_.size() == most_)
    throw std::runtime_error(
        fmt::format("{} regions of memory are registered: expected fewer, as keys go up to {}", used_.size(), most_));
  for (;;) {
    const std::uint64_t key = next_;
    next_ = (next_ + 1) & most_;
    if (key != 0 && used_.insert(key).second) return key;
  }
}

}  // namespace trellis::ccl::libfabric
