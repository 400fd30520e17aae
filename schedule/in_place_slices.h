// Renames input slices to output slices where the two buffers overlap (in place). The input must not be written, so
// shared chunks are always named by the output buffer.
#pragma once
#include "schedule/schedule.h"

namespace trellis::schedule {

inline Slice as_output(const Task& task, Rank rank, const Slice& s) {
  if (!task.operation.in_place || s.buffer != Buffer::input) return s;
  const Cells base = cells(task, rank);
  const std::int64_t chunk = base.at(s.buffer, s.first) - base.output;
  if (chunk < 0 || chunk + s.count > output_chunks(task, rank)) return s;
  return {static_cast<std::int32_t>(chunk), s.count, Buffer::output};
}

// True if only part of the slice lies in the output.
inline bool straddles(const Task& task, Rank rank, const Slice& s) {
  if (!task.operation.in_place || s.buffer != Buffer::input || as_output(task, rank, s).buffer == Buffer::output)
    return false;
  const Cells base = cells(task, rank);
  const std::int64_t chunk = base.at(s.buffer, s.first) - base.output;
  return chunk < output_chunks(task, rank) && chunk + s.count > 0;
}

}  // namespace trellis::schedule
