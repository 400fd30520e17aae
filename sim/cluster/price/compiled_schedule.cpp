#include "sim/cluster/price/compiled_schedule.h"

#include "schedule/builder/program_recorder.h"
#include "schedule/collective_traits.h"
#include "text/refuse.h"

#include <algorithm>
#include <limits>

namespace trellis::sim {
namespace {

using schedule::Op;
using schedule::Program;
using schedule::Schedule;
using schedule::Step;

// One side of a transfer: the peer, channel and tag, and the step that sends or receives.
struct Line {
  Rank peer = 0;
  std::uint8_t channel = 0;
  std::int32_t tag = 0;
  std::uint32_t step = 0;

  std::uint64_t place() const { return static_cast<std::uint64_t>(static_cast<std::uint32_t>(tag)) << 8 | channel; }
  bool operator<(const Line& o) const { return peer != o.peer ? peer < o.peer : place() < o.place(); }
};

std::uint32_t found(const std::vector<Line>& lines, const Line& wanted, Rank at) {
  const auto line = std::ranges::lower_bound(lines, wanted, std::less<>());
  if (line == lines.end() || wanted < *line)
    text::refuse("rank {} has no other end for transfer {} with rank {} on channel {}", at, wanted.tag, wanted.peer,
                 wanted.channel);
  return line->step;
}

std::int32_t number_of(Rank peer, const std::vector<Rank>& peers) {
  return static_cast<std::int32_t>(std::ranges::lower_bound(peers, peer) - peers.begin());
}

bool reads_from(const Program& program, const Step& step, const schedule::Slice& written) {
  bool found = false;
  schedule::each_slice(program, step, [&](const schedule::Slice& s, bool writes) {
    if (writes || s.buffer != written.buffer) return;
    found = found || (s.first < written.first + written.count && written.first < s.first + s.count);
  });
  return found;
}

// Makes programs as make() and make_program() do, but polls `stopped` every thousand steps.
std::vector<Program> polled(const schedule::Algorithm& algorithm, const schedule::Request& request,
                            std::optional<Rank> only, const CompiledSchedule::Stopped& stopped) {
  schedule::ProgramRecorder recorder(task_of(algorithm, request), only, [&, steps = 0](const Program&) mutable {
    return ++steps % 1024 != 0 || !stopped();
  });
  schedule::Builder builder(recorder, request.ranks());
  try {
    build(algorithm, request, builder);
    return recorder.finish();
  } catch (const schedule::ProgramRecorder::Unwanted&) {
    throw CompilationStopped();
  }
}

schedule::Symmetry all_distinct(Rank ranks) { return {{{schedule::SymmetryAxis::Kind::distinct, ranks}}}; }

}  // namespace

Schedule make_or_stop(const schedule::Algorithm& algorithm, const schedule::Request& request,
                      const CompiledSchedule::Stopped& stopped) {
  if (!stopped || !refusal(algorithm, request).empty()) return make(algorithm, request);
  expect_writable(algorithm, request, schedule::most_steps_written);
  return {.task = task_of(algorithm, request),
          .algorithm = algorithm.name,
          .programs = polled(algorithm, request, {}, stopped)};
}

// The sends and receives of a class, sorted for lookup, and the index of the move of each step.
struct CompiledSchedule::Lines {
  std::vector<Line> sends, receives;
  std::vector<std::uint32_t> move;  // by step; for steps that are moves
};

CompiledSchedule::CompiledSchedule(const Schedule& s) : task_(s.task), symmetry_(all_distinct(s.ranks())) {
  compile(s.programs);
}

CompiledSchedule::CompiledSchedule(const Schedule& s, std::int64_t elements, const Stopped& stopped)
    : task_(s.task), symmetry_(all_distinct(s.ranks())), elements_(elements) {
  compile(s.programs, stopped);
}

CompiledSchedule::CompiledSchedule(const Schedule& s, std::vector<std::int64_t> blocks)
    : task_(s.task), symmetry_(all_distinct(s.ranks())), blocks_(std::move(blocks)) {
  const auto expected =
      static_cast<std::size_t>(task_.ranks) *
      (schedule::counts_by_pair(task_.operation.collective) ? static_cast<std::size_t>(task_.ranks) : 1);
  if (blocks_.size() != expected)
    text::refuse("{} blocks of {}: expected {}", blocks_.size(), name(task_.operation.collective), expected);
  compile(s.programs);
}

CompiledSchedule::CompiledSchedule(const schedule::Algorithm& algorithm, const schedule::Request& request,
                                   const Stopped& stopped)
    : task_(task_of(algorithm, request)), symmetry_(symmetry_of(algorithm, request)) {
  std::vector<Program> programs;
  if (symmetry_.classes() == symmetry_.ranks())
    programs = make_or_stop(algorithm, request, stopped).programs;
  else
    for (Rank r : symmetry_.representatives())
      programs.push_back(stopped ? std::move(polled(algorithm, request, r, stopped).front())
                                 : make_program(algorithm, request, r));
  compile(programs, stopped);
}

std::uint32_t CompiledSchedule::class_of(Rank r) const {
  if (std::ssize(classes_) == ranks()) return static_cast<std::uint32_t>(r);
  return numbers_.at(symmetry_.representative(r));
}

Rank CompiledSchedule::peer(Rank of, Rank as_named) const {
  if (std::ssize(classes_) == ranks()) return as_named;
  return symmetry_.image(symmetry_.representative(of), of, as_named);
}

std::int64_t CompiledSchedule::moves() const {
  std::int64_t sum = 0;
  for (const RankClassProgram& c : classes_) sum += std::ssize(c.moves);
  return sum * (ranks() / std::ssize(classes_));
}

void CompiledSchedule::compile(const std::vector<Program>& programs, const Stopped& stopped) {
  std::size_t compiled = 0;
  const auto poll = [&] {
    if (stopped && ++compiled % 64 == 0 && stopped()) throw CompilationStopped();
  };
  const std::vector<Rank> representatives = symmetry_.representatives();
  classes_.resize(programs.size());
  std::vector<Lines> lines(programs.size());
  for (std::uint32_t i = 0; i < programs.size(); ++i) {
    classes_[i].representative = representatives[i];
    numbers_.emplace(representatives[i], i);
    add_moves(programs[i], classes_[i], lines[i]);
    poll();
  }
  for (std::size_t i = 0; i < programs.size(); ++i) join(programs[i], classes_[i], lines), poll();
  for (std::size_t i = 0; i < programs.size(); ++i) add_followers(programs[i], classes_[i], lines), poll();
}

std::uint32_t CompiledSchedule::sized(const Program& program, const schedule::Kinds& kinds,
                                      const schedule::Slice& slice) const {
  const bool unknown = slice.buffer == schedule::Buffer::scratch && program.scratch_sizes.empty();
  if (!sized() || unknown) return static_cast<std::uint32_t>(slice.count);
  std::int64_t sum = 0;
  for (std::int32_t i = 0; i < slice.count; ++i)
    sum += elements_of(kinds.of(slice.buffer, std::int64_t{slice.first} + i));
  if (sum > std::numeric_limits<std::uint32_t>::max())
    text::refuse("a transfer of {} elements: expected at most 2^32 - 1", sum);
  return static_cast<std::uint32_t>(sum);
}

// The number of elements in a chunk. The pieces of a block have equal sizes except the last ones, which have the rest.
std::int64_t CompiledSchedule::elements_of(std::int64_t kind) const {
  const std::int64_t piece = kind % task_.pieces;
  if (blocks_.empty()) return piece < *elements_ ? 1 : 0;
  const std::int64_t block = blocks_[static_cast<std::size_t>(kind / task_.pieces)];
  const std::int64_t usual = (block + task_.pieces - 1) / task_.pieces;
  return std::clamp<std::int64_t>(block - usual * piece, 0, usual);
}

void CompiledSchedule::add_moves(const Program& program, RankClassProgram& c, Lines& lines) {
  lines.move.resize(program.steps.size());
  const schedule::Kinds kinds(task_, c.representative, program);
  const auto note = [&](std::vector<Line>& ends, const schedule::End& end, const Step& s, std::uint32_t step) {
    ends.push_back({end.peer, s.channel, end.tag, step});
    c.peers.push_back(end.peer);
  };
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    const Step& s = program.steps[i];
    if (receives(s.op)) {
      note(lines.receives, s.end, s, i);
      continue;
    }
    lines.move[i] = static_cast<std::uint32_t>(c.moves.size());
    Move m{.waits = s.after.count, .chunks = sized(program, kinds, sends(s.op) ? s.from : s.to), .step = i};
    if (sends(s.op)) {
      m.channel = s.channel;
      note(lines.sends, s.end, s, i);
      if (s.second.peer >= 0) note(lines.sends, s.second, s, i);
    } else {
      m.adds = s.op == Op::reduce;
      m.sources = m.adds ? 1 + s.further.count : 1;
      m.copies_twice = s.op == Op::copy && s.further.count > 0;
    }
    c.moves.push_back(m);
  }
  std::ranges::sort(lines.sends, std::less<>());
  std::ranges::sort(lines.receives, std::less<>());
  std::ranges::sort(c.peers);
  c.peers.erase(std::unique(c.peers.begin(), c.peers.end()), c.peers.end());
}

// Finds where each send arrives: its peer, and the step of the peer that receives it.
void CompiledSchedule::join(const Program& program, RankClassProgram& c, const std::vector<Lines>& lines) {
  for (Move& m : c.moves) {
    const Step& s = program.steps[m.step];
    if (!sends(s.op)) continue;
    const auto other_end = [&](const schedule::End& end) {
      const Rank me = symmetry_.image(end.peer, symmetry_.representative(end.peer), c.representative);
      return found(lines[class_of(end.peer)].receives, {me, s.channel, end.tag, 0}, end.peer);
    };
    m.peer = number_of(s.end.peer, c.peers);
    m.arrival = other_end(s.end);
    if (s.second.peer < 0) continue;
    m.second = number_of(s.second.peer, c.peers);
    m.second_arrival = other_end(s.second);
  }
}

// Lists for each step the moves that wait for its end. A transfer is a move of its sender, but also waits for the steps
// that its receive waits for.
void CompiledSchedule::add_followers(const Program& program, RankClassProgram& c, const std::vector<Lines>& lines) {
  const auto steps = static_cast<std::uint32_t>(program.steps.size());
  const Lines& own = lines[class_of(c.representative)];
  const auto follower = [&](std::uint32_t i) -> DependentMove {
    const Step& s = program.steps[i];
    if (!receives(s.op)) return {own.move[i], no_peer};
    const std::uint32_t sender = class_of(s.end.peer);
    const Rank me = symmetry_.image(s.end.peer, symmetry_.representative(s.end.peer), c.representative);
    const std::uint32_t step = found(lines[sender].sends, {me, s.channel, s.end.tag, 0}, s.end.peer);
    const std::uint32_t move = lines[sender].move[step];
    Move& kept = classes_[sender].moves[move];
    // Every rank of the sender's class has such a receiver. This one stands for all of them, so its waits count once.
    kept.waits += s.after.count;
    if (s.op == schedule::Op::recv_reduce) kept.adds = true, kept.sources = 2;
    return {move, number_of(s.end.peer, c.peers)};
  };
  std::vector<DependentMove> by_step(steps);
  c.begin.assign(steps + 1, 0);
  for (std::uint32_t i = 0; i < steps; ++i) {
    by_step[i] = follower(i);
    for (std::int32_t before : program.after(program.steps[i])) ++c.begin[before + 1];
  }
  for (std::uint32_t i = 0; i < steps; ++i) c.begin[i + 1] += c.begin[i];
  c.followers.resize(c.begin[steps]);
  std::vector<std::uint32_t> next(c.begin.begin(), c.begin.end() - 1);
  for (std::uint32_t i = 0; i < steps; ++i)
    for (std::int32_t before : program.after(program.steps[i])) c.followers[next[before]++] = by_step[i];
  find_streams(program, c, by_step);
}

// One pass of the engines reads all sources of a sum directly on the chip and writes the result to its destination.
// This requires that nothing but the sum reads the arrivals, and nothing but one send reads the sum.
void CompiledSchedule::find_streams(const Program& program, RankClassProgram& c,
                                    const std::vector<DependentMove>& by_step) {
  std::vector<std::uint32_t> readers(program.steps.size(), 0);
  std::vector<std::uint32_t> reader(program.steps.size(), 0);  // the last reader
  for (std::uint32_t i = 0; i < program.steps.size(); ++i)
    for (std::int32_t before : program.after(program.steps[i]))
      if (reads_from(program, program.steps[i], program.steps[before].to)) ++readers[before], reader[before] = i;
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    const Step& s = program.steps[i];
    if (s.op != Op::reduce) continue;
    for (std::int32_t before : program.after(s)) {
      const Step& arrival = program.steps[before];
      if (arrival.op == Op::recv && arrival.to.buffer == schedule::Buffer::scratch && readers[before] == 1 &&
          reader[before] == i)
        classes_[class_of(arrival.end.peer)].moves[by_step[before].move].staged = true;
    }
    if (readers[i] != 1) continue;
    const Step& send = program.steps[reader[i]];
    if (!sends(send.op) || send.second.peer >= 0 || send.from != s.to) continue;
    Move& sum = c.moves[by_step[i].move];
    sum.forwards = true;
    c.moves[by_step[reader[i]].move].summed = sum.sources;
  }
}

}  // namespace trellis::sim
