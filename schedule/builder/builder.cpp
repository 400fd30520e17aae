#include "schedule/builder/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "schedule/builder/program_recorder.h"
#include "schedule/builder/rank_permutation.h"
#include "schedule/schedule_too_large.h"

namespace trellis::schedule {
namespace {

std::int64_t laid_out(const ChunkWindow& w, std::int64_t position) {
  std::int64_t chunk = w.base;
  for (std::size_t i = 0; i + 1 < w.digits.size(); ++i) {
    chunk += (position + w.digits[i].shift) % w.digits[i].size * w.digits[i].stride;
    position /= w.digits[i].size;
  }
  if (w.names) position = w.names->outer(static_cast<Rank>(position));
  return chunk + position * (w.digits.empty() ? 1 : w.digits.back().stride);
}

// Length of the gapless run of the sequence that starts at this position.
std::int64_t unbroken(const ChunkWindow& w, std::int64_t position) {
  std::int64_t length = 1;
  for (const ChunkWindow::Digit& digit : w.digits) {
    if (digit.size == 1) continue;
    if (digit.stride != length || digit.shift != 0) return std::max<std::int64_t>(1, length - position % length);
    if (w.names && &digit == &w.digits.back())
      return w.names->run(static_cast<Rank>(position / length)) * length - position % length;
    length *= digit.size;
  }
  return w.digits.empty() ? std::numeric_limits<std::int64_t>::max() : length - position % length;
}

// Start of the single outer run that these chunks of a window map to; none if they map to several runs.
std::optional<std::int64_t> as_one(const ChunkWindow& w, std::int64_t first, std::int64_t count) {
  if (unbroken(w, first * w.grain) < count * w.grain) return {};
  return laid_out(w, first * w.grain);
}

// The outer runs that these chunks of a window map to.
std::vector<HazardTracker::Run> laid_out(const ChunkWindow& w, std::int64_t first, std::int64_t count) {
  std::vector<HazardTracker::Run> runs;
  std::int64_t position = first * w.grain;
  for (const std::int64_t end = (first + count) * w.grain; position < end;) {
    const std::int64_t length = std::min(end - position, unbroken(w, position));
    const std::int64_t chunk = laid_out(w, position);
    if (!runs.empty() && runs.back().first + runs.back().count == chunk)
      runs.back().count += length;
    else
      runs.push_back({chunk, length});
    position += length;
  }
  return runs;
}

ChunkPlace advanced(ChunkPlace p, std::int64_t by) {
  p.first += by;
  if (p.like >= 0) p.like += by;
  return p;
}

const ChunkWindow& window(const SubMachine& part, Region region) {
  switch (region) {
    case Region::input:
      return part.input;
    case Region::output:
      return part.output;
    default:
      return part.data;
  }
}

// Translates a place of the part to one of its parent. `first` and `count` are chunks of the parent; `number` is the
// parent's scratch number. Scratch is cut as finely as its `like` data.
ChunkPlace outer(const SubMachine& part, const ChunkPlace& place, std::int64_t first, std::int64_t count,
                 std::int64_t number) {
  const Rank rank = part.outer(place.rank);
  if (place.region == Region::scratch) return {rank, Region::scratch, number, count, first};
  const ChunkWindow& w = window(part, place.region);
  return {rank, w.region, first, count, w.region == Region::scratch ? first - w.base : -1};
}

}  // namespace

Rank SubMachine::outer(Rank inner) const { return names ? names->outer(inner) : first + inner * stride; }

Rank SubMachine::inner(Rank outer) const {
  if (names) return names->inner(outer);
  if (outer < first) return -1;
  const Rank inner = (outer - first) / stride;
  return (outer - first) % stride == 0 && inner < count ? inner : -1;
}

Builder Builder::on_channel(int channel) const {
  Builder lane = *this;
  lane.channel_ += channel * spacing_;
  if (lane.channel_ >= most_channels)
    throw ScheduleTooLarge(fmt::format("channel {} is too many: expected at most {}", lane.channel_, most_channels));
  return lane;
}

Builder Builder::beside(int builders, int number) const {
  Builder one = on_channel(number);
  one.spacing_ *= builders;
  return one;
}

Builder Builder::part(const SubMachine& part) const {
  Builder inner = *this;
  inner.parent_ = std::make_shared<const Builder>(*this);
  inner.part_ = std::make_shared<const SubMachine>(part);
  inner.ranks_ = part.count;
  inner.scratch_used_ = std::make_shared<std::int64_t>(0);
  return inner;
}

bool Builder::everyone() const { return !recorder_->only(); }

std::vector<Rank> Builder::next_round() const {
  recorder_->next_round();
  if (!everyone()) {
    const Rank me = wanted_rank();
    return me < 0 ? std::vector<Rank>{} : std::vector<Rank>{me};
  }
  std::vector<Rank> all(ranks_);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<Rank> Builder::sorted(std::vector<Rank> ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

bool Builder::in_place() const {
  if (!parent_) return recorder_->task().operation.in_place;
  return part_->input.region == Region::input && part_->output.region == Region::output && parent_->in_place();
}

Rank Builder::wanted_rank() const {
  if (!parent_) return recorder_->only().value_or(-1);
  return part_->inner(parent_->wanted_rank());
}

void Builder::pass_rounds(int rounds) const {
  for (int i = 0; i < rounds; ++i) recorder_->next_round();
}

// The place's first chunk, as this builder's window numbers chunks. Scratch has no number there: returns that of the
// data chunk which is as large. Also counts scratch as used.
std::int64_t Builder::counted_from(const ChunkPlace& place) const {
  if (place.region != Region::scratch) return place.first;
  *scratch_used_ = std::max(*scratch_used_, place.first + place.count);
  if (parent_ && place.like < 0)
    throw std::logic_error("an algorithm took scratch without saying what it is as large as");
  return place.like;
}

std::optional<ChunkPlace> Builder::as_one(ChunkPlace place) const {
  for (const Builder* b = this;; b = b->parent_.get()) {
    const std::int64_t from = b->counted_from(place);
    if (!b->parent_) return place;
    const ChunkWindow& w = window(*b->part_, place.region);
    const auto first = schedule::as_one(w, from, place.count);
    if (!first) return {};
    place = outer(*b->part_, place, *first, place.count * w.grain, b->part_->scratch + place.first * w.grain);
  }
}

void Builder::resolve(const ChunkPlace& place, std::vector<ChunkPlace>& resolved) const {
  const std::int64_t from = counted_from(place);
  if (!parent_) return resolved.push_back(place);
  const ChunkWindow& w = window(*part_, place.region);
  std::int64_t number = part_->scratch + place.first * w.grain;
  for (const auto& [first, count] : laid_out(w, from, place.count)) {
    parent_->resolve(outer(*part_, place, first, count, number), resolved);
    number += count;
  }
}

std::vector<ChunkPlace> Builder::resolve(const ChunkPlace& place) const {
  if (const auto one = as_one(place)) return {*one};
  std::vector<ChunkPlace> resolved;
  resolve(place, resolved);
  return resolved;
}

// Splits both places into runs of equal lengths.
template <class Move>
void Builder::each_run(const ChunkPlace& from, const ChunkPlace& to, Move move) const {
  const auto source = as_one(from), target = as_one(to);
  if (source && target && source->count == target->count) return move(*source, *target);
  const std::vector<ChunkPlace> sources = resolve(from), targets = resolve(to);
  std::size_t s = 0, t = 0;
  std::int64_t source_done = 0, target_done = 0;
  while (s < sources.size() && t < targets.size()) {
    ChunkPlace a = sources[s], b = targets[t];
    const std::int64_t length = std::min(a.count - source_done, b.count - target_done);
    a = advanced(a, source_done), b = advanced(b, target_done);
    a.count = b.count = length;
    move(a, b);
    source_done += length, target_done += length;
    if (source_done == sources[s].count) ++s, source_done = 0;
    if (target_done == targets[t].count) ++t, target_done = 0;
  }
}

void Builder::copy(ChunkPlace from, ChunkPlace to) {
  each_run(from, to, [&](const ChunkPlace& a, const ChunkPlace& b) { recorder_->copy(a, b, channel_); });
}

void Builder::reduce(ChunkPlace from, ChunkPlace to) {
  each_run(from, to, [&](const ChunkPlace& a, const ChunkPlace& b) { recorder_->reduce(a, b, channel_); });
}

void Builder::reduce_both(ChunkPlace a, ChunkPlace b, std::int64_t waits) {
  const std::vector<ChunkPlace> ours = resolve(a), theirs = resolve(b);
  const std::vector<ChunkPlace> ours_wait = resolve(tmp(a.rank, waits, a.count, a.first));
  const std::vector<ChunkPlace> theirs_wait = resolve(tmp(b.rank, waits, b.count, b.first));
  for (std::size_t i = 0; i < ours.size(); ++i)
    recorder_->reduce_both(ours[i], theirs[i], ours_wait[i], theirs_wait[i], channel_);
}

void Builder::copy_twice(ChunkPlace from, ChunkPlace to, ChunkPlace also) {
  const std::vector<ChunkPlace> sources = resolve(from), targets = resolve(to), others = resolve(also);
  if (sources.size() == 1 && targets.size() == 1 && others.size() == 1)
    return recorder_->copy_twice(sources[0], targets[0], others[0], channel_);
  copy(from, to);
  copy(from, also);
}

void Builder::reduce_all(const std::vector<ChunkPlace>& sources, ChunkPlace to) {
  std::int64_t done = 0;
  std::vector<std::vector<ChunkPlace>> resolved;
  for (const ChunkPlace& source : sources) resolved.push_back(resolve(source));
  const std::vector<ChunkPlace> targets = resolve(to);
  const auto at = [](const std::vector<ChunkPlace>& runs, std::int64_t position) {
    for (const ChunkPlace& run : runs) {
      if (position < run.count) {
        ChunkPlace rest = advanced(run, position);
        rest.count -= position;
        return rest;
      }
      position -= run.count;
    }
    throw std::logic_error("an algorithm summed places of different lengths");
  };
  for (const std::int64_t total = std::accumulate(targets.begin(), targets.end(), std::int64_t{0},
                                                  [](std::int64_t n, const ChunkPlace&p) { return n + p.count; });
       done < total;) {
    ChunkPlace target = at(targets, done);
    std::vector<ChunkPlace> pieces;
    for (const auto& runs : resolved) {
      pieces.push_back(at(runs, done));
      target.count = std::min(target.count, pieces.back().count);
    }
    for (ChunkPlace& piece : pieces) piece.count = target.count;
    recorder_->reduce_all(pieces, target, channel_);
    done += target.count;
  }
}

void Builder::settle(ChunkPlace place) {
  for (const ChunkPlace& run : resolve(place)) recorder_->settle(run, channel_);
}

}  // namespace trellis::schedule
