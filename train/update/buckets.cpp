#include "train/update/buckets.h"

namespace trellis::train {

std::vector<Bucket> all_reduce_buckets(std::span<const std::size_t> bytes, std::size_t cap) {
  std::vector<Bucket> buckets;
  Bucket pending;
  std::size_t total = 0;
  const auto flush = [&] {
    if (!pending.empty()) buckets.push_back(std::move(pending));
    pending.clear(), total = 0;
  };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (total + bytes[i] > cap) flush();
    pending.push_back(i), total += bytes[i];
    if (bytes[i] >= cap) flush();
  }
  flush();
  return buckets;
}

std::vector<Bucket> reduce_scatter_buckets(std::span<const std::size_t> bytes, std::size_t cap) {
  std::vector<Bucket> buckets;
  Bucket pending;
  std::size_t total = 0;
  const auto flush = [&] {
    if (!pending.empty()) buckets.push_back(std::move(pending));
    pending.clear(), total = 0;
  };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool join = bytes[i] > cap && 2 * total < cap && total + bytes[i] <= 2 * cap;
    if (total + bytes[i] > cap && !join) flush();
    pending.push_back(i), total += bytes[i];
    if (join || total > cap) flush();
  }
  flush();
  return buckets;
}

}  // namespace trellis::train
