// Who wrote and who read each cell of one rank's memory last, kept by runs, so that a new step learns what it must wait
// for: a read waits for the last write; a write waits for every read since then, or for the write if there is none.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/pieces.h"

namespace trellis::schedule {

class Hazards {
 public:
  struct Run {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  void read(Run, std::int32_t step, std::vector<std::int32_t>& after);
  void write(Run, std::int32_t step, std::vector<std::int32_t>& after);
  enum class Written : std::uint8_t { none, some, all };
  Written written(Run) const;             // how much of it any step has written
  std::vector<Run> unwritten(Run) const;  // the parts that none has, in order

 private:
  Pieces::At cut(Run);  // makes piece boundaries at both ends of the run; returns the first piece at or after its start
  Pieces::At split(Pieces::At right, std::int64_t cell);
  Pieces::At reaching(std::int64_t cell) const;

  Pieces pieces_;  // a cell in none is untouched
  struct Reader {
    std::int32_t step = 0, next = -1;
  };
  std::vector<Reader> readers_;  // since the last write, as lists, of which pieces that were one have parts in common
};

}  // namespace trellis::schedule
