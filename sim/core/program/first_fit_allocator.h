// A first-fit allocator for on-chip memory: the same bytes in every partition.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace trellis::sim::core {

class FirstFitAllocator {
 public:
  explicit FirstFitAllocator(std::int64_t bytes, std::int64_t unit) : unit_(unit) { free_[0] = bytes; }

  // Takes the first free place at a multiple of `step`; nothing if there is none.
  std::optional<std::int64_t> take(std::int64_t bytes, std::int64_t step = 1) {
    bytes = (bytes + unit_ - 1) / unit_ * unit_;
    for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
      const auto [first, size] = *piece;
      const std::int64_t at = (first + step - 1) / step * step;
      if (first + size < at + bytes) continue;
      free_.erase(piece);
      if (at > first) free_[first] = at - first;
      if (first + size > at + bytes) free_[at + bytes] = first + size - at - bytes;
      taken_[at] = bytes;
      return at;
    }
    return std::nullopt;
  }

  // Takes all bytes of a place that are still free, for good: give() cannot return them.
  void hold(std::int64_t at, std::int64_t bytes) {
    const std::int64_t end = at + bytes;
    const std::map<std::int64_t, std::int64_t> before = std::exchange(free_, {});
    for (const auto& [first, size] : before) {
      if (first < std::min(first + size, at)) free_[first] = std::min(first + size, at) - first;
      if (std::max(first, end) < first + size) free_[std::max(first, end)] = first + size - std::max(first, end);
    }
  }

  bool give(std::int64_t at) {
    const auto found = taken_.find(at);
    if (found == taken_.end()) return false;
    auto piece = free_.emplace(at, found->second).first;
    taken_.erase(found);
    if (const auto next = std::next(piece); next != free_.end() && piece->first + piece->second == next->first) {
      piece->second += next->second;
      free_.erase(next);
    }
    if (piece != free_.begin())
      if (const auto before = std::prev(piece); before->first + before->second == piece->first) {
        before->second += piece->second;
        free_.erase(piece);
      }
    return true;
  }

  std::int64_t largest() const {
    std::int64_t most = 0;
    for (const auto& [at, size] : free_) most = size > most ? size : most;
    return most;
  }

 private:
  std::int64_t unit_;
  std::map<std::int64_t, std::int64_t> free_, taken_;  // offset -> bytes
};

}  // namespace trellis::sim::core
