// Sorts a list of numbers that consists of a few sorted runs, as lists of similar events do, by merging the runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace trellis::sim {

template <class Number>
class NaturalMergeSort {
 public:
  void sort(std::vector<Number>& numbers) {
    if (numbers.size() <= few) {
      std::ranges::sort(numbers);
      return;
    }
    find_runs(numbers);
    while (ends_.size() > 1) {
      merged_.resize(numbers.size());
      merge_pairs(numbers);
      numbers.swap(merged_);
    }
  }

 private:
  static constexpr std::size_t few = 32;

  void find_runs(const std::vector<Number>& numbers) {
    ends_.clear();
    for (std::size_t i = 1; i < numbers.size(); ++i)
      if (numbers[i] < numbers[i - 1]) ends_.push_back(i);
    ends_.push_back(numbers.size());
  }

  void merge_pairs(const std::vector<Number>& from) {
    std::size_t first = 0, kept = 0;
    for (std::size_t run = 0; run < ends_.size(); run += 2) {
      const std::size_t middle = ends_[run], end = ends_[std::min(run + 1, ends_.size() - 1)];
      std::size_t a = first, b = middle, out = first;
      while (a < middle && b < end) {  // branch-free, as a branch on the numbers could not be predicted
        const bool later = from[b] < from[a];
        merged_[out++] = later ? from[b] : from[a];
        a += !later, b += later;
      }
      std::copy(from.begin() + a, from.begin() + middle, merged_.begin() + out);
      std::copy(from.begin() + b, from.begin() + end, merged_.begin() + out + (middle - a));
      ends_[kept++] = end;
      first = end;
    }
    ends_.resize(kept);
  }

  std::vector<std::size_t> ends_;  // of the runs
  std::vector<Number> merged_;
};

}  // namespace trellis::sim
