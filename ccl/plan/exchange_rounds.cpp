#include "ccl/plan/exchange_rounds.h"

#include <algorithm>

#include "ccl/plan/compiled_program.h"
#include "ccl/transports/segment/cells.h"

namespace trellis::ccl {
namespace {

using schedule::Program;

constexpr std::uint32_t none = ExchangeRounds::none;
constexpr Rank least_ranks = 3;  // between two ranks, a message over a lane is as fast

// Fills in who sends and receives what, in which round. False: the numbers of messages differ between pairs of ranks,
// or a pair uses several lanes.
bool find_messages(const CompiledProgram& c, Rank rank, Rank ranks, ExchangeRounds& all) {
  const auto others = static_cast<std::size_t>(ranks) - 1;
  if (c.lines.size() != 2 * others || c.lines.front().count == 0) return false;
  const std::uint32_t rounds = c.lines.front().count;
  all.ranks = ranks;
  all.rounds.resize(rounds);
  for (auto* const steps : {&all.sends, &all.receives}) steps->assign(rounds * static_cast<std::size_t>(ranks), none);
  for (const LaneMessages& line : c.lines) {
    if (line.count != rounds || line.peer == rank) return false;
    std::vector<std::uint32_t>& steps = line.receives ? all.receives : all.sends;
    for (std::uint32_t k = 0; k < rounds; ++k) {
      std::uint32_t& step = steps[k * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(line.peer)];
      if (step != none) return false;  // over several lanes
      step = c.messages[line.first + k];
    }
  }
  return true;
}

// For each step, when its message is due. Time 2k+1 is when round k is published, 2k+2 when its messages are received.
// Empty if a step sends in two rounds.
std::vector<std::uint32_t> due_times(const CompiledProgram& c, Rank rank, const ExchangeRounds& all) {
  std::vector<std::uint32_t> due(c.steps.size(), none);
  for (std::uint32_t k = 0; k < all.rounds.size(); ++k)
    for (Rank r = 0; r < all.ranks; ++r) {
      if (r == rank) continue;
      std::uint32_t& published = due[all.send(k, r)];
      if (published != none && published != 2 * k + 1) return {};
      published = 2 * k + 1;
      due[all.receive(k, r)] = 2 * k + 2;
    }
  return due;
}

// The steps that prevent running the program in rounds, in which a rank publishes a round's messages together, once it
// has received all of the round before: messages that are not ready when they are due, and steps that come after a
// step that waits for them. `when_read`: a send ends when all have read it; otherwise it ends at once.
std::vector<std::uint32_t> late_steps(const CompiledProgram& c, const std::vector<std::uint32_t>& due, bool when_read) {
  std::vector<std::uint32_t> time(c.steps.size(), 0), late;
  for (std::uint32_t i = 0; i < c.steps.size(); ++i) {
    const CompiledStep& step = c.steps[i];
    if (due[i] != none) {
      const bool sends = schedule::sends(step.op);
      if (sends || when_read ? time[i] >= due[i] : time[i] > due[i]) late.push_back(i);
      time[i] = due[i] + (sends && when_read ? 1 : 0);
    }
    for (std::uint32_t f = 0; f < step.follow_count; ++f) {
      const std::uint32_t next = c.followers[step.follows + f];
      if (next <= i) late.push_back(i);
      time[next] = std::max(time[next], time[i]);
    }
  }
  return late;
}

bool overlap(const BufferRange& a, const BufferRange& b) {
  return a.buffer == b.buffer && a.first < b.first + b.elements && b.first < a.first + a.elements;
}

// Calls f with each place that the step reads.
template <class Function>
void each_source(const CompiledProgram& c, const CompiledStep& step, Function f) {
  if (schedule::reads(step.op)) f(step.from);
  for (std::uint32_t i = 0; i < step.further_count; ++i) f(c.places[step.further + i]);
}

// The reduce step that waits for the round's messages and for nothing else, if no other step waits for them; otherwise
// none.
std::uint32_t step_after(const CompiledProgram& c, Rank rank, const ExchangeRounds& all, std::size_t round) {
  std::uint32_t after = none;
  for (Rank r = 0; r < all.ranks; ++r) {
    if (r == rank) continue;
    const CompiledStep& receive = c.steps[all.receive(round, r)];
    if (receive.op != schedule::Op::recv || receive.to.buffer != schedule::Buffer::scratch || receive.follow_count != 1)
      return none;
    const std::uint32_t next = c.followers[receive.follows];
    if (after != none && next != after) return none;
    after = next;
  }
  const bool alone =
      c.steps[after].op == schedule::Op::reduce && c.ahead[after].waits == static_cast<std::uint32_t>(all.ranks) - 1;
  return alone ? after : none;
}

void find_sum(const CompiledProgram& c, Rank rank, ExchangeRounds& all, std::size_t round) {
  const std::uint32_t sum = step_after(c, rank, all, round);
  if (sum == none) return;
  std::vector<Rank> summed;
  each_source(c, c.steps[sum], [&](const BufferRange& source) {
    summed.push_back(-1);
    for (Rank r = 0; r < all.ranks; ++r) {
      const BufferRange* const to = r == rank ? nullptr : &c.steps[all.receive(round, r)].to;
      if (to != nullptr && to->buffer == source.buffer && to->first == source.first && to->elements == source.elements)
        summed.back() = r;
    }
  });
  if (std::ranges::count(summed, -1) + all.ranks - 1 != std::ssize(summed)) return;
  bool read_elsewhere = false;
  for (std::uint32_t i = 0; i < c.steps.size(); ++i) {
    if (i == sum) continue;
    each_source(c, c.steps[i], [&](const BufferRange& source) {
      for (Rank r = 0; r < all.ranks; ++r)
        read_elsewhere |= r != rank && overlap(source, c.steps[all.receive(round, r)].to);
    });
  }
  if (read_elsewhere) return;
  all.rounds[round].sum = sum;
  all.rounds[round].summed = std::move(summed);
}

}  // namespace

std::size_t ExchangeRounds::bytes(std::size_t chunk_bytes) const {
  std::size_t most = 0;
  for (const Round& round : rounds) {
    const std::size_t message = static_cast<std::size_t>(round.chunks) * chunk_bytes;
    most = std::max(most, round.same ? message : static_cast<std::size_t>(ranks) * round_stride(message, ranks));
  }
  return most;
}

bool alike_on_all(const schedule::AlgorithmConfig& config, const schedule::Request& request) {
  if (!config.dims.empty() || !config.order.empty() || !config.numbering.empty()) return false;
  return schedule::symmetry_of(schedule::algorithm_named(config.algorithm), request).representatives().size() == 1;
}

ExchangeRounds rounds_of(const CompiledProgram& c, const Program& program, Rank rank, Rank ranks) {
  ExchangeRounds all;
  if (ranks < least_ranks || c.lines.empty() || !find_messages(c, rank, ranks, all)) return {};
  const std::vector<std::uint32_t> due = due_times(c, rank, all);
  if (due.empty() || !late_steps(c, due, false).empty()) return {};
  for (std::size_t k = 0; k < all.rounds.size(); ++k) {
    ExchangeRounds::Round& round = all.rounds[k];
    const std::uint32_t first = all.send(k, rank == 0 ? 1 : 0);
    round.same = round.may_stay = true;
    for (Rank r = 0; r < ranks; ++r) {
      if (r == rank) continue;
      const std::uint32_t step = all.send(k, r);
      round.same &= program.steps[step].from == program.steps[first].from;
      round.chunks = std::max(round.chunks, static_cast<std::int32_t>(program.steps[step].from.count));
    }
    find_sum(c, rank, all, k);
  }
  for (const std::uint32_t step : late_steps(c, due, true))
    if (due[step] != none) all.rounds[(due[step] - 1) / 2].may_stay = false;
  return all;
}

}  // namespace trellis::ccl
