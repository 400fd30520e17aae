// In place, some chunks of the input are chunks of the output too. The input may not be written, so that such chunks go
// by the output's name.
#pragma once
#include "schedule/schedule.h"

namespace trellis::schedule {

inline Slice as_output(const Task& task, Rank rank, const Slice& s) {
  if (!task.in_place || s.buffer != Buffer::input) return s;
  const Cells base = cells(task, rank);
  const std::int64_t chunk = base.at(s.buffer, s.first) - base.output;
  if (chunk < 0 || chunk + s.count > output_chunks(task, rank)) return s;
  return {static_cast<std::int32_t>(chunk), s.count, Buffer::output};
}

// Some of it is the output's, and some is not.
inline bool straddles(const Task& task, Rank rank, const Slice& s) {
  if (!task.in_place || s.buffer != Buffer::input || as_output(task, rank, s).buffer == Buffer::output) return false;
  const Cells base = cells(task, rank);
  const std::int64_t chunk = base.at(s.buffer, s.first) - base.output;
  return chunk < output_chunks(task, rank) && chunk + s.count > 0;
}

}  // namespace trellis::schedule
