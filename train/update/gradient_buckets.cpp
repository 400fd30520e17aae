#include "train/update/gradient_buckets.h"

#include <utility>

namespace trellis::train {
namespace {

// cuts(total, next): whether a bucket of `total` bytes ends before a tensor of `next` bytes, and whether after it.
template <class Cuts>
std::vector<Bucket> buckets_of(std::span<const std::size_t> bytes, Cuts cuts) {
  std::vector<Bucket> buckets;
  std::size_t total = 0;
  bool ended = true;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto [before, after] = cuts(ended ? 0 : total, bytes[i]);
    if (ended || before) buckets.emplace_back(), total = 0;
    buckets.back().push_back(i), total += bytes[i];
    ended = after;
  }
  return buckets;
}

}  // namespace

std::vector<Bucket> all_reduce_buckets(std::span<const std::size_t> bytes, std::size_t cap) {
  return buckets_of(bytes,
                    [cap](std::size_t total, std::size_t next) { return std::pair(total + next > cap, next >= cap); });
}

std::vector<Bucket> reduce_scatter_buckets(std::span<const std::size_t> bytes, std::size_t cap) {
  return buckets_of(bytes, [cap](std::size_t total, std::size_t next) {
    const bool join = next > cap && 2 * total < cap && total + next <= 2 * cap;
    return std::pair(total + next > cap && !join, next > cap);
  });
}

}  // namespace trellis::train
