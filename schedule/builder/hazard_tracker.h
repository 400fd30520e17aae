// Dependency tracking (read-after-write, write-after-read, write-after-write) for one rank's memory, by runs of cells.
// A read waits for the last write. A write waits for all reads since the last write; without any, for that write.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/builder/access_map.h"

namespace trellis::schedule {

class HazardTracker {
 public:
  struct Run {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  void read(Run, std::int32_t step, std::vector<std::int32_t>& after);
  void write(Run, std::int32_t step, std::vector<std::int32_t>& after);
  enum class Written : std::uint8_t { none, some, all };
  Written written(Run) const;             // how much of the run any step has written
  std::vector<Run> unwritten(Run) const;  // the subruns that no step has written, in order

 private:
  AccessMap::At cut(Run);  // splits pieces at both ends of the run; returns the first piece at or after its start
  AccessMap::At split(AccessMap::At right, std::int64_t cell);
  AccessMap::At reaching(std::int64_t cell) const;

  AccessMap pieces_;  // a cell in no piece is untouched
  struct Reader {
    std::int32_t step = 0, next = -1;
  };
  std::vector<Reader> readers_;  // linked lists of reads since the last write; pieces split from one share list tails
};

}  // namespace trellis::schedule
