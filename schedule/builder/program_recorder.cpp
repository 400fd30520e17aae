#include "schedule/builder/program_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>

#include "schedule/builder/order_rounds.h"
#include "schedule/collective_traits.h"
#include "schedule/schedule_too_large.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

constexpr Rank most_ranks = 1 << 20;

bool within(std::int64_t first, std::int64_t end, HazardTracker::Run run) {
  return first <= run.first && run.first + run.count <= end;
}

bool has_data_numbers(Collective c) { return !traits(c).by_pair && c != Collective::permute; }

}  // namespace

ProgramRecorder::ProgramRecorder(const Task& task, std::optional<Rank> only, Watch watch)
    : task_(task), only_(only), watch_(std::move(watch)) {
  check(task);
  if (only && (*only < 0 || *only >= task.ranks))
    text::refuse("rank {} does not exist: expected 0 to {}", *only, task.ranks - 1);
  if (!only && task.ranks > most_ranks)
    throw ScheduleTooLarge(fmt::format("{} ranks are too many to write out (at most {}): ask for one rank's program",
                                       task.ranks, most_ranks));
  owners_.resize(only ? 1 : task.ranks);
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    Owner& o = owners_[i];
    o.rank = only ? *only : static_cast<Rank>(i);
    o.cells = cells(task, o.rank);
    const std::int64_t data = data_chunks(task), in = input_chunks(task, o.rank), out = output_chunks(task, o.rank);
    const std::int64_t own = by_block(task.operation.collective) ? std::int64_t{o.rank} * task.pieces : 0;
    o.input_start = in < data ? own : 0;
    o.input_end = o.input_start + in;
    o.output_start = out < data ? own : 0;
    o.output_end = o.output_start + out;
  }
}

ProgramRecorder::Owner* ProgramRecorder::owner(Rank rank) {
  if (rank < 0 || rank >= task_.ranks)
    throw std::logic_error(fmt::format("an algorithm named rank {} of {}", rank, task_.ranks));
  if (!only_) return &owners_[rank];
  return rank == *only_ ? &owners_[0] : nullptr;
}

// The place's chunks in the given buffer. Scratch begins with a chunk for each data chunk; the chunks that an algorithm
// requested by number follow. Scratch is packed at the end.
Slice ProgramRecorder::slice(const Owner& o, const ChunkPlace& p, Buffer buffer) const {
  std::int64_t first = p.first;
  if (p.region == Region::data && buffer == Buffer::input) first -= o.input_start;
  if (p.region == Region::data && buffer == Buffer::output) first -= o.output_start;
  if (p.region == Region::scratch) first += data_chunks(task_);
  if (constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max(); first + p.count > most)
    throw ScheduleTooLarge(
        fmt::format("rank {} would take more than {} chunks of {}: expected fewer channels, segments or ranks", o.rank,
                    most, name(buffer)));
  if (first < 0 || p.count < 1)
    throw std::logic_error(fmt::format("an algorithm named chunks {}+{} of rank {}", p.first, p.count, p.rank));
  return {static_cast<std::int32_t>(first), static_cast<std::int32_t>(p.count), buffer};
}

// The one buffer that holds the whole run; none if it is spread over several, or if nothing was stored there.
std::optional<Buffer> ProgramRecorder::lies_in(const Owner& o, HazardTracker::Run data) const {
  using enum HazardTracker::Written;
  const auto written = [&](Buffer buffer, std::int64_t start) {
    return o.hazards.written({o.cells.at(buffer, data.first - start), data.count});
  };
  if (within(o.output_start, o.output_end, data)) {
    const auto output = written(Buffer::output, o.output_start);
    if (output == all) return Buffer::output;
    if (output == some) return {};
  } else if (data.first < o.output_end && data.first + data.count > o.output_start) {
    const std::vector<Part> parts = locate(o, data);
    return parts.size() == 1 && parts.front().held ? std::optional(parts.front().buffer) : std::nullopt;
  }
  const auto scratch = written(Buffer::scratch, 0);
  if (scratch == all) return Buffer::scratch;
  if (scratch == none && within(o.input_start, o.input_end, data)) return Buffer::input;
  return {};
}

// Written chunks lie in the output or in scratch. Unwritten ones still lie in the caller's input.
std::vector<ProgramRecorder::Part> ProgramRecorder::locate(const Owner& o, HazardTracker::Run data) const {
  const std::int64_t end = data.first + data.count;
  const auto unwritten = [&](Buffer buffer, std::int64_t start, HazardTracker::Run r) {
    auto runs = o.hazards.unwritten({o.cells.at(buffer, r.first - start), r.count});
    for (auto& run : runs) run.first += start - o.cells.at(buffer, 0);
    return runs;
  };
  std::vector<Part> parts;
  const auto add = [&](Buffer buffer, std::int64_t from, std::int64_t to, bool held) {
    if (from >= to) return;
    if (!parts.empty() && parts.back().buffer == buffer && parts.back().held == held)
      parts.back().data.count += to - from;
    else
      parts.push_back({buffer, {from, to - from}, held});
  };
  const auto add_untouched = [&](HazardTracker::Run r) {
    const std::int64_t from = std::clamp(o.input_start, r.first, r.first + r.count);
    const std::int64_t to = std::clamp(o.input_end, from, r.first + r.count);
    add(Buffer::scratch, r.first, from, false);
    add(Buffer::input, from, to, true);
    add(Buffer::scratch, to, r.first + r.count, false);
  };
  const auto add_outside_output = [&](HazardTracker::Run r) {
    std::int64_t at = r.first;
    for (const auto& gap : unwritten(Buffer::scratch, 0, r)) {
      add(Buffer::scratch, at, gap.first, true);
      add_untouched(gap);
      at = gap.first + gap.count;
    }
    add(Buffer::scratch, at, r.first + r.count, true);
  };
  const std::int64_t from = std::clamp(o.output_start, data.first, end), to = std::clamp(o.output_end, from, end);
  if (data.first < from) add_outside_output({data.first, from - data.first});
  std::int64_t at = from;
  if (from < to)
    for (const auto& gap : unwritten(Buffer::output, o.output_start, {from, to - from})) {
      add(Buffer::output, at, gap.first, true);
      add_outside_output(gap);
      at = gap.first + gap.count;
    }
  add(Buffer::output, at, to, true);
  if (to < end) add_outside_output({to, end - to});
  return parts;
}

Slice ProgramRecorder::home(Owner& o, const ChunkPlace& p) const {
  if (p.region == Region::input) return slice(o, p, Buffer::input);
  if (p.region == Region::output) return slice(o, p, Buffer::output);
  if (p.region == Region::scratch) {
    const Slice s = slice(o, p, Buffer::scratch);
    o.labels.note(s, (p.like < 0 ? p.first : p.like) % data_chunks(task_));
    return s;
  }
  if (!has_data_numbers(task_.operation.collective))
    throw std::logic_error(
        fmt::format("{} has no data chunks: name input or output", name(task_.operation.collective)));
  if (within(o.output_start, o.output_end, {p.first, p.count})) return slice(o, p, Buffer::output);
  const Slice s = slice(o, p, Buffer::scratch);
  o.labels.note(s, p.first);
  return s;
}

// Where to read the place's chunks. A run spread over several buffers is first gathered.
Slice ProgramRecorder::source(Owner& o, const ChunkPlace& p, int channel) {
  const Slice there = home(o, p);
  if (p.region != Region::data) return there;
  if (const auto buffer = lies_in(o, {p.first, p.count})) {
    const Slice found = slice(o, p, *buffer);
    return o.cells.at(found.buffer, found.first) == o.cells.at(there.buffer, there.first) ? there : found;
  }
  gather_at(o, p, there, channel);
  return there;
}

void ProgramRecorder::gather_at(Owner& o, const ChunkPlace& p, const Slice& there, int channel) {
  for (const Part& part : locate(o, {p.first, p.count})) {
    if (!part.held || part.buffer == there.buffer) continue;
    const ChunkPlace piece{p.rank, Region::data, part.data.first, part.data.count};
    const Slice from = slice(o, piece, part.buffer), to = slice(o, piece, there.buffer);
    if (o.cells.at(from.buffer, from.first) == o.cells.at(to.buffer, to.first)) continue;
    Step step{.op = Op::copy, .channel = static_cast<std::uint8_t>(channel)};
    step.from = from;
    step.to = to;
    add(o, step);
  }
}

void ProgramRecorder::settle(const ChunkPlace& p, int channel) {
  if (Owner* o = owner(p.rank)) gather_at(*o, p, home(*o, p), channel);
}

void ProgramRecorder::add(Owner& o, Step step, std::span<const Slice> further) {
  if (++steps_ > most_steps_written)
    throw ScheduleTooLarge(
        fmt::format("this schedule takes more than {} steps: ask for one rank's program", most_steps_written));
  const auto self = static_cast<std::int32_t>(o.program.steps.size());
  channels_ = std::max(channels_, step.channel + 1);
  o.program.set_further(step, further);
  after_.clear();
  each_slice(o.program, step, [&](const Slice& s, bool written) {
    const HazardTracker::Run run{o.cells.at(s.buffer, s.first), s.count};
    if (written)
      o.hazards.write(run, self, after_);
    else
      o.hazards.read(run, self, after_);
  });
  std::ranges::sort(after_);
  after_.erase(std::unique(after_.begin(), after_.end()), after_.end());
  o.program.set_after(step, after_);
  o.program.steps.push_back(step);
  o.rounds.push_back(round_);
  if (watch_ && !watch_(o.program)) throw Unwanted{};
}

End ProgramRecorder::next(CounterMap& counts, Rank peer, int channel) const {
  const auto key = static_cast<std::uint64_t>(peer) << 8 | static_cast<std::uint64_t>(channel);
  return {peer, counts.next(key)};
}

void ProgramRecorder::send(const ChunkPlace& from, Rank to, int channel, Rank also) {
  Owner* o = owner(from.rank);
  if (!o) return;
  Step step{.op = Op::send, .channel = static_cast<std::uint8_t>(channel)};
  step.from = source(*o, from, channel);
  step.end = next(o->sent, to, channel);
  if (also >= 0) step.second = next(o->sent, also, channel);
  add(*o, step);
}

void ProgramRecorder::receive(const ChunkPlace& to, Rank from, bool adding, int channel) {
  Owner* o = owner(to.rank);
  if (!o) return;
  Step step{.op = adding ? Op::recv_reduce : Op::recv, .channel = static_cast<std::uint8_t>(channel)};
  if (adding) step.from = source(*o, to, channel);
  step.to = home(*o, to);
  step.end = next(o->received, from, channel);
  add(*o, step);
}

// Adds the received data to data that is being sent. If the sum would overwrite the latter, the received data waits in
// scratch.
void ProgramRecorder::receive_beside(const ChunkPlace& to, Rank from, const ChunkPlace& waits, int channel) {
  Owner* o = owner(to.rank);
  if (!o) return;
  const Slice being_sent = source(*o, to, channel), sum = home(*o, to);
  const bool apart = o->cells.at(being_sent.buffer, being_sent.first) != o->cells.at(sum.buffer, sum.first);
  if (apart) return receive(to, from, true, channel);
  receive(waits, from, false, channel);
  reduce(waits, to, channel);
}

void ProgramRecorder::transfer(const ChunkPlace& from, const ChunkPlace& to, bool adding, int channel) {
  send(from, to.rank, channel);
  receive(to, from.rank, adding, channel);
}

void ProgramRecorder::copy(const ChunkPlace& from, const ChunkPlace& to, int channel) {
  if (from.rank != to.rank) return transfer(from, to, false, channel);
  Owner* o = owner(to.rank);
  if (!o) return;
  Step step{.op = Op::copy, .channel = static_cast<std::uint8_t>(channel)};
  step.from = source(*o, from, channel);
  step.to = home(*o, to);
  if (o->cells.at(step.from.buffer, step.from.first) != o->cells.at(step.to.buffer, step.to.first)) add(*o, step);
}

void ProgramRecorder::copy_twice(const ChunkPlace& from, const ChunkPlace& to, const ChunkPlace& also, int channel) {
  if (from.rank == to.rank || from.rank == also.rank)
    throw std::logic_error("an algorithm wrote one read to two places of which one is its own rank's");
  send(from, to.rank, channel, also.rank);
  for (const ChunkPlace* target : {&to, &also}) receive(*target, from.rank, false, channel);
}

void ProgramRecorder::reduce(const ChunkPlace& from, const ChunkPlace& to, int channel) {
  if (from.rank != to.rank) return transfer(from, to, true, channel);
  const ChunkPlace sources[] = {to, from};
  reduce_all(sources, to, channel);
}

void ProgramRecorder::reduce_both(const ChunkPlace& a, const ChunkPlace& b, const ChunkPlace& a_waits,
                                  const ChunkPlace& b_waits, int channel) {
  send(a, b.rank, channel);
  send(b, a.rank, channel);
  receive_beside(a, b.rank, a_waits, channel);
  receive_beside(b, a.rank, b_waits, channel);
}

void ProgramRecorder::reduce_all(std::span<const ChunkPlace> sources, const ChunkPlace& to, int channel) {
  Owner* o = owner(to.rank);
  if (!o) return;
  if (sources.size() == 1) return copy(sources[0], to, channel);
  std::vector<Slice> slices;
  for (const ChunkPlace& place : sources) {
    if (place.rank != to.rank) throw std::logic_error("an algorithm summed chunks of several ranks in one step");
    slices.push_back(source(*o, place, channel));
  }
  Step step{.op = Op::reduce, .channel = static_cast<std::uint8_t>(channel)};
  step.from = slices.front();
  step.to = home(*o, to);
  add(*o, step, std::span(slices).subspan(1));
}

std::vector<Program> ProgramRecorder::finish() {
  next_round();
  std::vector<Program> programs;
  const bool blocks_alike = task_.even || (by_block(task_.operation.collective) && !uneven(task_.operation.collective));
  for (Owner& o : owners_) {
    if (has_data_numbers(task_.operation.collective) && o.output_start < o.output_end)
      settle({o.rank, Region::data, o.output_start, o.output_end - o.output_start}, 0);
    order_rounds(o.program, o.rounds);
    pack_scratch(o.program, o.rounds, o.labels, blocks_alike ? task_.pieces : data_chunks(task_));
    programs.push_back(std::move(o.program));
  }
  return programs;
}

}  // namespace trellis::schedule
