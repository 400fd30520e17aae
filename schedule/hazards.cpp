#include "schedule/hazards.h"

#include <algorithm>

namespace trellis::schedule {

// Looked up once: from the run's end it is not far to its start.
Hazards::Map::iterator Hazards::cut(Run run) {
  const auto split = [&](Map::iterator right, std::int64_t cell) {
    if (right == pasts_.begin() || (right != pasts_.end() && right->first == cell)) return right;
    auto left = std::prev(right);
    if (left->second.end <= cell) return right;
    Past past = left->second;
    left->second.end = cell;
    return pasts_.emplace_hint(right, cell, std::move(past));
  };
  const std::int64_t end = run.first + run.count;
  auto piece = split(pasts_.lower_bound(end), end);
  while (piece != pasts_.begin() && std::prev(piece)->first >= run.first) --piece;
  return split(piece, run.first);
}

void Hazards::read(Run run, std::int32_t step, std::vector<std::int32_t>& after) {
  const std::int64_t end = run.first + run.count;
  std::int64_t at = run.first;
  for (auto past = cut(run); at < end; ++past) {
    const std::int64_t begin = past == pasts_.end() ? end : std::min(end, past->first);
    if (at < begin) past = pasts_.emplace_hint(past, at, Past{begin, -1, {}});
    if (past->second.writer >= 0) after.push_back(past->second.writer);
    past->second.readers.push_back(step);
    at = past->second.end;
  }
}

void Hazards::write(Run run, std::int32_t step, std::vector<std::int32_t>& after) {
  const std::int64_t end = run.first + run.count;
  const auto begin = cut(run);
  auto past = begin;
  for (; past != pasts_.end() && past->first < end; ++past) {
    const auto& readers = past->second.readers;
    const bool read_by_others = std::ranges::any_of(readers, [&](std::int32_t reader) { return reader != step; });
    for (std::int32_t reader : readers)
      if (reader != step) after.push_back(reader);
    if (!read_by_others && past->second.writer >= 0) after.push_back(past->second.writer);
  }
  if (past != begin && std::next(begin) == past && begin->first == run.first && begin->second.end == end) {
    begin->second.writer = step;
    begin->second.readers.clear();
    return;
  }
  pasts_.emplace_hint(pasts_.erase(begin, past), run.first, Past{end, step, {}});
}

std::vector<Hazards::Run> Hazards::unwritten(Run run) const {
  const std::int64_t end = run.first + run.count;
  std::vector<Run> found;
  const auto add = [&](std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    if (!found.empty() && found.back().first + found.back().count == from)
      found.back().count += to - from;
    else
      found.push_back({from, to - from});
  };
  std::int64_t at = run.first;
  auto past = pasts_.upper_bound(at);
  if (past != pasts_.begin() && std::prev(past)->second.end > at) --past;
  for (; past != pasts_.end() && past->first < end && at < end; ++past) {
    add(at, std::min(end, past->first));
    if (past->second.writer < 0) add(std::max(at, past->first), std::min(end, past->second.end));
    at = std::max(at, past->second.end);
  }
  add(at, end);
  return found;
}

}  // namespace trellis::schedule
