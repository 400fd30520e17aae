// Who wrote and who read each cell of one rank's memory last, kept by runs, so that a new step learns what it must wait
// for: a read waits for the last write; a write waits for every read since then, or for the write if there is none.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace trellis::schedule {

class Hazards {
 public:
  struct Run {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  void read(Run, std::int32_t step, std::vector<std::int32_t>& after);
  void write(Run, std::int32_t step, std::vector<std::int32_t>& after);
  std::vector<Run> unwritten(Run) const;  // the parts that no step has written, in order

 private:
  struct Past {
    std::int64_t end = 0;
    std::int32_t writer = -1;
    std::vector<std::int32_t> readers;  // since the write
  };
  using Map = std::map<std::int64_t, Past>;
  Map::iterator cut(
      Run);    // makes piece boundaries at both ends of the run; returns the first piece at or after its start
  Map pasts_;  // by first cell; a cell in no piece is untouched
};

}  // namespace trellis::schedule
