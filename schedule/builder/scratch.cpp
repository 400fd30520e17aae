#include "schedule/builder/scratch.h"

#include <algorithm>
#include <deque>
#include <tuple>

namespace trellis::schedule {
namespace {

// A run of scratch: the union of slices that overlap. So every slice of a step lies within one unit.
struct Unit {
  std::int32_t first = 0, end = 0;  // numbers before packing
  std::int32_t first_step = 0, last_step = 0;
  std::int32_t first_touch = 0;  // order of first use, so that results don't depend on the numbers before packing
  std::int32_t packed = 0;
  std::vector<std::int32_t> users = {};         // steps that touch it
  std::vector<ScratchSize> scratch_sizes = {};  // sizes of its chunks
  const Unit* previous = nullptr;               // the unit that used this memory before
};

std::vector<Unit> find_units(const Program& program) {
  std::vector<std::pair<std::int32_t, std::int32_t>> runs;
  for (const Step& step : program.steps)
    each_slice(program, step, [&](const Slice& s, bool) {
      if (s.buffer == Buffer::scratch) runs.emplace_back(s.first, s.first + s.count);
    });
  std::ranges::sort(runs);
  std::vector<Unit> units;
  for (auto [first, end] : runs)
    if (units.empty() || first >= units.back().end)
      units.push_back({.first = first, .end = end});
    else
      units.back().end = std::max(units.back().end, end);
  return units;
}

Unit& unit_of(std::vector<Unit>& units, std::int32_t chunk) {
  return *std::prev(std::ranges::upper_bound(units, chunk, {}, &Unit::first));
}

void note_users(const Program& program, std::vector<Unit>& units) {
  std::int32_t touched = 0;
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    each_slice(program, program.steps[i], [&](const Slice& s, bool) {
      if (s.buffer != Buffer::scratch) return;
      Unit& unit = unit_of(units, s.first);
      const auto step = static_cast<std::int32_t>(i);
      if (unit.users.empty()) unit.first_step = step, unit.first_touch = touched++;
      if (unit.users.empty() || unit.users.back() != step) unit.users.push_back(step);
      unit.last_step = step;
    });
}

// Goes through the program in order. A unit's memory returns to the pool of its shape at its last use.
void assign(std::vector<Unit>& units, std::span<const std::int32_t> rounds, Program& program) {
  constexpr std::int32_t rest = 4;  // steps between the last use and the reuse
  std::vector<Unit*> by_start, by_end;
  for (Unit& unit : units) by_start.push_back(&unit), by_end.push_back(&unit);
  std::ranges::sort(by_start, {}, [](const Unit* u) { return std::pair(u->first_step, u->first_touch); });
  std::ranges::sort(by_end, {}, [](const Unit* u) { return std::tuple(u->last_step, u->first_step, u->first_touch); });
  std::map<std::vector<std::pair<std::int32_t, std::int32_t>>, std::deque<Unit*>> free;
  const auto shape = [](const Unit& u) {
    std::vector<std::pair<std::int32_t, std::int32_t>> key;
    for (const ScratchSize& size : u.scratch_sizes) key.emplace_back(size.count, size.like);
    return key;
  };
  const auto spent = [&](const Unit& old, const Unit& next) {
    return old.last_step + rest < next.first_step && rounds[old.last_step] < rounds[next.first_step];
  };
  program.scratch = 0;
  program.scratch_sizes.clear();
  auto done = by_end.begin();
  for (Unit* unit : by_start) {
    for (; done != by_end.end() && spent(**done, *unit); ++done) free[shape(**done)].push_back(*done);
    auto& pool = free[shape(*unit)];
    if (!pool.empty()) {
      unit->previous = pool.front();
      unit->packed = pool.front()->packed;
      pool.pop_front();
      continue;
    }
    unit->packed = program.scratch;
    program.scratch += unit->end - unit->first;
    program.scratch_sizes.insert(program.scratch_sizes.end(), unit->scratch_sizes.begin(), unit->scratch_sizes.end());
  }
}

void rewrite(Program& program, std::vector<Unit>& units) {
  const auto moved = [&](Slice& s) {
    if (s.buffer == Buffer::scratch && s.count > 0) {
      const Unit& unit = unit_of(units, s.first);
      s.first += unit.packed - unit.first;
    }
  };
  Program packed;
  std::vector<std::int32_t> after;
  for (Step step : program.steps) {
    const auto before = program.after(step);
    after.assign(before.begin(), before.end());
    each_slice(program, step, [&](const Slice& s, bool written) {
      if (!written || s.buffer != Buffer::scratch) return;
      if (const Unit* previous = unit_of(units, s.first).previous)
        after.insert(after.end(), previous->users.begin(), previous->users.end());
    });
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    moved(step.to);
    moved(step.from);
    packed.set_after(step, after);
    packed.steps.push_back(step);
  }
  packed.slices = std::move(program.slices);
  for (Slice& s : packed.slices) moved(s);
  packed.scratch = program.scratch;
  packed.scratch_sizes = std::move(program.scratch_sizes);
  program = std::move(packed);
}

}  // namespace

void ScratchSizes::note(const Slice& s, std::int64_t like) {
  std::int32_t at = s.first;
  const std::int32_t end = s.first + s.count;
  auto next = runs_.upper_bound(at);
  if (next != runs_.begin()) {
    const auto& [first, size] = *std::prev(next);
    at = std::max(at, first + size.count);
  }
  while (at < end) {
    const std::int32_t stop = next == runs_.end() ? end : std::min(end, next->first);
    if (at < stop) runs_.emplace_hint(next, at, ScratchSize{stop - at, static_cast<std::int32_t>(like + at - s.first)});
    if (next == runs_.end()) break;
    at = std::max(stop, next->first + next->second.count);
    ++next;
  }
}

std::vector<ScratchSize> ScratchSizes::of(std::int32_t first, std::int32_t end) const {
  std::vector<ScratchSize> scratch_sizes;
  for (auto run = std::prev(runs_.upper_bound(first)); run != runs_.end() && run->first < end; ++run) {
    const std::int32_t from = std::max(first, run->first), to = std::min(end, run->first + run->second.count);
    scratch_sizes.push_back({to - from, run->second.like + from - run->first});
  }
  return scratch_sizes;
}

void pack_scratch(Program& program, std::span<const std::int32_t> rounds, const ScratchSizes& labels,
                  std::int64_t period) {
  std::vector<Unit> units = find_units(program);
  if (units.empty()) return;
  note_users(program, units);
  for (Unit& unit : units) {
    unit.scratch_sizes = labels.of(unit.first, unit.end);
    for (ScratchSize& size : unit.scratch_sizes) size.like = static_cast<std::int32_t>(size.like % period);
  }
  assign(units, rounds, program);
  rewrite(program, units);
}

}  // namespace trellis::schedule
