// Where a schedule's chunks are in memory, in elements, once the caller's counts are known.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/schedule.h"

namespace trellis::ccl {

// The caller's counts: one count for all blocks, or, for the _v forms, one for each block. all_to_all_v has one for
// each pair, at source * ranks + target; a rank needs only those of its own pairs.
struct BlockCounts {
  std::size_t block = 0;
  std::vector<std::size_t> blocks = {};
  bool operator==(const BlockCounts&) const = default;
};

class ChunkLayout {
 public:
  // `aligned`: chunks begin at multiples of this many elements, where blocks are large enough for it to matter.
  ChunkLayout(const schedule::Task&, const schedule::Program&, schedule::Rank, const BlockCounts&, std::size_t aligned);

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
  const BlockCounts& counts_;
  std::size_t aligned_;
  std::vector<std::size_t> begins_[3];  // starts of each buffer's chunks, and the buffer's end
};

// The most elements that a chunk of a block has.
std::size_t largest_chunk(const schedule::Task&, std::size_t block, std::size_t aligned);

// Whether blocks of these counts can be cut as the task requires.
bool divides(const schedule::Task&, const BlockCounts&);

}  // namespace trellis::ccl
