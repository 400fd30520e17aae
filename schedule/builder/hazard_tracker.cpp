#include "schedule/builder/hazard_tracker.h"

#include <algorithm>

namespace trellis::schedule {

// Splits the piece that contains the cell, if any. `right` is the first piece that begins at the cell or later.
AccessMap::At HazardTracker::split(AccessMap::At right, std::int64_t cell) {
  if (right == pieces_.begin() || (right != pieces_.end() && pieces_[right].first == cell)) return right;
  AccessRecord& left = pieces_[pieces_.previous(right)];
  if (left.end <= cell) return right;
  AccessRecord rest = left;
  rest.first = left.end = cell;
  return pieces_.insert(right, rest);
}

// Searches from the run's start, since most runs are exactly one piece, or lie in none.
AccessMap::At HazardTracker::cut(Run run) {
  const std::int64_t end = run.first + run.count;
  auto first = pieces_.from(run.first), last = first;
  if (first == pieces_.end() || pieces_[first].first != run.first) first = last = split(first, run.first);
  while (last != pieces_.end() && pieces_[last].end <= end) last = pieces_.next(last);
  if (last == pieces_.end() || pieces_[last].first >= end) return first;
  split(pieces_.next(last), end);
  return pieces_.from(run.first);
}

void HazardTracker::read(Run run, std::int32_t step, std::vector<std::int32_t>& after) {
  const std::int64_t end = run.first + run.count;
  std::int64_t at = run.first;
  for (auto piece = cut(run); at < end; piece = pieces_.next(piece)) {
    const std::int64_t begin = piece == pieces_.end() ? end : std::min(end, pieces_[piece].first);
    if (at < begin) piece = pieces_.insert(piece, {.first = at, .end = begin});
    AccessRecord& read = pieces_[piece];
    if (read.writer >= 0) after.push_back(read.writer);
    readers_.push_back({step, read.readers});
    read.readers = static_cast<std::int32_t>(readers_.size()) - 1;
    at = read.end;
  }
}

void HazardTracker::write(Run run, std::int32_t step, std::vector<std::int32_t>& after) {
  const std::int64_t end = run.first + run.count;
  const auto begin = cut(run);
  auto last = begin;
  for (; last != pieces_.end() && pieces_[last].first < end; last = pieces_.next(last)) {
    const AccessRecord& piece = pieces_[last];
    bool read_by_others = false;
    for (std::int32_t i = piece.readers; i >= 0; i = readers_[i].next) {
      if (readers_[i].step == step) continue;
      read_by_others = true;
      after.push_back(readers_[i].step);
    }
    if (!read_by_others && piece.writer >= 0) after.push_back(piece.writer);
  }
  const AccessRecord written{.first = run.first, .end = end, .writer = step};
  if (last != begin && pieces_.next(begin) == last && pieces_[begin].first == run.first)
    pieces_[begin] = written;
  else
    pieces_.insert(pieces_.erase(begin, last), written);
}

// The first piece that ends after the cell.
AccessMap::At HazardTracker::reaching(std::int64_t cell) const {
  const auto after = pieces_.from(cell + 1);
  if (after == pieces_.begin()) return after;
  const auto before = pieces_.previous(after);
  return pieces_[before].end > cell ? before : after;
}

HazardTracker::Written HazardTracker::written(Run run) const {
  const std::int64_t end = run.first + run.count;
  std::int64_t found = 0;
  for (auto at = reaching(run.first); at != pieces_.end() && pieces_[at].first < end; at = pieces_.next(at))
    if (const AccessRecord& piece = pieces_[at]; piece.writer >= 0)
      found += std::min(end, piece.end) - std::max(run.first, piece.first);
  return found == 0 ? Written::none : found == run.count ? Written::all : Written::some;
}

std::vector<HazardTracker::Run> HazardTracker::unwritten(Run run) const {
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
  for (auto at_piece = reaching(at); at_piece != pieces_.end() && at < end; at_piece = pieces_.next(at_piece)) {
    const AccessRecord& piece = pieces_[at_piece];
    if (piece.first >= end) break;
    add(at, std::min(end, piece.first));
    if (piece.writer < 0) add(std::max(at, piece.first), std::min(end, piece.end));
    at = std::max(at, piece.end);
  }
  add(at, end);
  return found;
}

}  // namespace trellis::schedule
