// Where a schedule's chunks lie in memory, in elements, once the caller's counts are known.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/schedule.h"

namespace trellis::ccl {

// What the caller said: one count for all blocks, or for the _v forms one for each block (all_to_all_v: for each pair,
// source * ranks + target; a rank need fill in only those that it takes part in).
struct Counts {
  std::size_t block = 0;
  std::vector<std::size_t> blocks = {};
  bool operator==(const Counts&) const = default;
};

class Layout {
 public:
  // `aligned`: chunks begin at multiples of so many elements where blocks are large enough for it to matter.
  Layout(const schedule::Task&, const schedule::Program&, schedule::Rank, const Counts&, std::size_t aligned);

  struct Run {
    std::size_t first = 0;  // element of the buffer
    std::size_t elements = 0;
  };
  Run of(const schedule::Slice&) const;
  std::size_t elements(schedule::Buffer) const;

 private:
  std::size_t size_of(std::int64_t kind) const;
  std::size_t piece(std::size_t block, std::int64_t index) const;
  std::vector<std::size_t> begins(schedule::Buffer, std::int64_t chunks, const schedule::Kinds&) const;

  const schedule::Task& task_;
  const Counts& counts_;
  std::size_t aligned_;
  std::vector<std::size_t> begins_[3];  // of each buffer's chunks, and its end
};

// Whether blocks of these counts can be cut as the task demands.
bool divides(const schedule::Task&, const Counts&);

}  // namespace trellis::ccl
