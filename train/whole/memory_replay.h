// The memory of a class that runs ranges of its tasks in another order, some of them many times.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/graph/peak_memory.h"

namespace trellis::train {

struct TaskRange {
  std::uint32_t first = 0, end = 0;
};

// Bytes relative to those before a range: the most while the range runs, and those after it.
struct MemoryDelta {
  std::int64_t most = 0, after = 0;
};

class MemoryReplay {
 public:
  MemoryReplay(const schedule::ExecutionGraph& graph, const schedule::RankClass& of) : graph_(graph), of_(of) {}

  // Computes each range's memory. `ranges`: all tasks. `more` further copies of the tensors `repeated` are held, too.
  void find(const std::vector<TaskRange>& ranges, const std::vector<std::uint32_t>& repeated, std::size_t more);
  void pass(std::size_t range, std::uint32_t task);  // runs the range; `task`: PeakMemory::task, if the peak is here
  schedule::PeakMemory peak() const { return peak_; }
  MemoryDelta bytes_of(std::size_t range) const {
    return {profiles_[range].most.back(), profiles_[range].after.back()};
  }
  std::int64_t now(std::size_t category) const { return now_[category]; }
  std::int64_t now() const { return now_.back(); }

 private:
  using Amounts = std::vector<std::int64_t>;  // by category, and last the sum
  struct Profile {
    Amounts most, after;  // relative to what is held before it
    std::uint32_t at = 0;
  };

  const schedule::ExecutionGraph& graph_;
  const schedule::RankClass& of_;
  std::vector<Profile> profiles_;
  Amounts now_;
  schedule::PeakMemory peak_;
};

}  // namespace trellis::train
