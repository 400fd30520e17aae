// Allocates numbers from 0 on, the lowest free one first. So what is allocated in order is in order in memory,
// whatever was freed before.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace trellis::sim {

class IndexAllocator {
 public:
  std::uint32_t take() {
    while (first_ < groups_.size() && groups_[first_] == 0) ++first_;
    if (first_ == groups_.size()) add_group();
    const std::size_t word = first_ * 64 + static_cast<std::size_t>(std::countr_zero(groups_[first_]));
    const auto bit = static_cast<std::size_t>(std::countr_zero(words_[word]));
    words_[word] &= words_[word] - 1;
    if (words_[word] == 0) groups_[first_] &= groups_[first_] - 1;
    return static_cast<std::uint32_t>(word * 64 + bit);
  }

  void give_back(std::uint32_t number) {
    const std::size_t word = number / 64, group = word / 64;
    words_[word] |= std::uint64_t{1} << number % 64;
    groups_[group] |= std::uint64_t{1} << word % 64;
    first_ = std::min(first_, group);
  }

 private:
  void add_group() {
    groups_.push_back(~std::uint64_t{0});
    words_.resize(words_.size() + 64, ~std::uint64_t{0});
  }

  std::vector<std::uint64_t> words_;   // a bit for each free number
  std::vector<std::uint64_t> groups_;  // a bit for each word that is not 0
  std::size_t first_ = 0;              // all groups before it are 0
};

}  // namespace trellis::sim
