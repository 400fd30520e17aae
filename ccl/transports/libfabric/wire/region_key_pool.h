// Keys by which peers name registered memory, where the provider leaves their choice to us. They begin at a random
// number, so that a write which was meant for a former process at this address finds none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <utility>

namespace trellis::ccl::libfabric {

class RegionKeyPool {
 public:
  // Keys of so many bytes: the provider's mr_key_size; 0: it has not said, and they have eight.
  RegionKeyPool(std::size_t bytes, std::uint64_t first);

  std::uint64_t take();  // never 0, nor one that is in use; throws runtime_error when all are
  void give(std::uint64_t key) { used_.erase(key); }

 private:
  const std::uint64_t most_;  // the greatest key
  std::uint64_t next_;
  std::unordered_set<std::uint64_t> used_;
};

// A key while it is in use; 0 where there are no keys to choose.
class RegionKey {
 public:
  explicit RegionKey(std::shared_ptr<RegionKeyPool> from)
      : from_(std::move(from)), number_(from_ ? from_->take() : 0) {}
  ~RegionKey() {
    if (from_) from_->give(number_);
  }
  RegionKey(RegionKey&&) noexcept = default;
  RegionKey& operator=(RegionKey&&) = delete;
  std::uint64_t number() const { return number_; }

 private:
  std::shared_ptr<RegionKeyPool> from_;
  std::uint64_t number_;
};

}  // namespace trellis::ccl::libfabric
