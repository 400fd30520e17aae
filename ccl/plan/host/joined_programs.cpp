#include "ccl/plan/host/joined_programs.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "ccl/plan/planner.h"
#include "schedule/algorithms/algorithm.h"
#include "schedule/stage_unreadable_buffers.h"

namespace trellis::ccl {
namespace {

using schedule::Op;
using schedule::Program;

// The programs to join: one rank's of each class, or every rank's if no two are alike.
struct Written {
  schedule::Task task;
  schedule::Symmetry symmetry;
  std::vector<Rank> ranks = {};  // ascending
  std::vector<Program> programs = {};

  bool folded() const { return std::ssize(ranks) < task.ranks; }
  // The place in `ranks` of the one that represents this rank.
  std::size_t place(Rank r) const {
    const Rank wanted = folded() ? symmetry.representative(r) : r;
    return static_cast<std::size_t>(std::ranges::lower_bound(ranks, wanted) - ranks.begin());
  }
  // The rank that is to the representative of `peer` what `me` is to `peer`.
  Rank image(Rank peer, Rank me) const {
    return folded() ? symmetry.image(peer, symmetry.representative(peer), me) : me;
  }
};

std::optional<Written> written(const schedule::Algorithm& algorithm, const schedule::Request& request,
                               std::size_t most_steps) {
  Written w{schedule::task_of(algorithm, request), schedule::symmetry_of(algorithm, request)};
  w.ranks = w.symmetry.representatives();
  std::ranges::sort(w.ranks);
  // Estimates the number of steps by the last rank, which is not the root: the root's program may be much longer than
  // the others.
  const Program last = schedule::make_program(algorithm, request, w.ranks.back());
  if (last.steps.size() * w.ranks.size() > most_steps) return {};
  if (!w.folded()) {
    w.programs = schedule::make(algorithm, request).programs;
    return w;
  }
  for (const Rank r : w.ranks) w.programs.push_back(schedule::make_program(algorithm, request, r));
  return w;
}

class Joiner {
 public:
  Joiner(const Written& w, const Call& call, const RankCores& places, const TransportCapabilities& paths)
      : written_(w), places_(places), size_(kernels::size_of(call.type)) {
    const BlockCounts counts{call.count, {}};
    for (std::size_t i = 0; i < w.ranks.size(); ++i)
      compiled_.push_back(compile(w.task, w.programs[i], w.ranks[i], counts, size_, paths));
  }

  bool in_rounds() const { return !compiled_.front().rounds.empty(); }

  JoinedPrograms joined() {
    for (std::size_t i = 0; i < compiled_.size(); ++i) add(i);
    for (std::size_t i = 0; i < compiled_.size(); ++i)
      for (const LaneMessages& line : compiled_[i].lines)
        if (line.receives) connect(i, line);
    return std::move(out_);
  }

 private:
  // If one rank stands for others, an empty step counts as one element: that step of another rank may have elements.
  double bytes_of(std::size_t elements) const {
    return static_cast<double>(std::max<std::size_t>(elements, written_.folded() ? 1 : 0) * size_);
  }

  void add(std::size_t i) {
    const CompiledProgram& c = compiled_[i];
    const auto first = static_cast<std::uint32_t>(out_.steps.size());
    firsts_.push_back(first);
    for (std::size_t s = 0; s < c.steps.size(); ++s) {
      const CompiledStep& flat = c.steps[s];
      const bool sends = flat.op == Op::send;
      JoinedStep step{.op = flat.op,
                      .from_scratch = sends && flat.from.buffer == schedule::Buffer::scratch,
                      .made_here = sends && c.ahead[s].waits != 0,
                      .program = static_cast<std::uint32_t>(i),
                      .waits = c.ahead[s].waits,
                      .follows = static_cast<std::uint32_t>(out_.followers.size()),
                      .follow_count = flat.follow_count,
                      .sources = 1 + flat.further_count,
                      .bytes = bytes_of((sends ? flat.from : flat.to).elements)};
      for (std::uint32_t k = 0; k < flat.follow_count; ++k)
        out_.followers.push_back(first + c.followers[flat.follows + k]);
      out_.steps.push_back(std::move(step));
    }
    for (std::size_t round = 0; round < c.rounds.rounds.size(); ++round) mark_round(i, round);
    for (const LaneMessages& line : c.lines)
      if (!line.receives) sends_[{i, line.peer, line.lane}] = &line;
    out_.lines.push_back(c.lines.size());
    out_.touched_bytes =
        std::max(out_.touched_bytes, (c.input_elements + c.output_elements + c.scratch_elements) * size_);
  }

  void mark_round(std::size_t i, std::size_t round) {
    const ExchangeRounds& rounds = compiled_[i].rounds;
    double sum = 0, largest = 0;
    for (Rank r = 0; r < rounds.ranks; ++r) {
      if (r == written_.ranks[i]) continue;
      JoinedStep& send = out_.steps[firsts_[i] + rounds.send(round, r)];
      send.round = out_.steps[firsts_[i] + rounds.receive(round, r)].round = static_cast<std::int32_t>(round);
      sum += send.bytes;
      largest = std::max(largest, send.bytes);
    }
    out_.published.push_back(rounds.rounds[round].same ? largest : sum);
  }

  void connect(std::size_t i, const LaneMessages& line) {
    const Rank me = written_.ranks[i];
    const std::size_t from = written_.place(line.peer);
    const auto found = sends_.find({from, written_.image(line.peer, me), line.lane});
    if (found == sends_.end() || found->second->count != line.count)
      throw std::logic_error("the ranks of a symmetry class are not alike");
    for (std::uint32_t k = 0; k < line.count; ++k) {
      const std::uint32_t receive = firsts_[i] + compiled_[i].messages[line.first + k];
      const std::uint32_t send = firsts_[from] + compiled_[from].messages[found->second->first + k];
      out_.steps[receive].ends.push_back(send);
      out_.steps[receive].far = far(me, line.peer);
      out_.steps[send].ends.push_back(receive);
    }
  }

  bool far(Rank a, Rank b) const {
    if (places_.sockets.empty()) return false;
    const int one = places_.sockets[static_cast<std::size_t>(a)], other = places_.sockets[static_cast<std::size_t>(b)];
    return one >= 0 && other >= 0 && one != other;
  }

  const Written& written_;
  const RankCores& places_;
  const std::size_t size_;
  std::vector<CompiledProgram> compiled_;
  std::vector<std::uint32_t> firsts_;
  std::map<std::tuple<std::size_t, Rank, std::int32_t>, const LaneMessages*> sends_;
  JoinedPrograms out_;
};

}  // namespace

std::optional<JoinedPrograms> join_programs(const schedule::AlgorithmConfig& config, const Call& call, Rank ranks,
                                            const RankCores& places, const TransportCapabilities& paths, bool hidden,
                                            std::size_t most_steps) {
  const schedule::Algorithm& algorithm = schedule::algorithm_named(config.algorithm);
  const schedule::Request request = schedule::request_by(
      config, {.operation = {.collective = call.operation.collective, .root = call.operation.root}, .dims = {ranks}});
  if (request.ranks() != ranks || config.channels > paths.lanes || !schedule::refusal(algorithm, request).empty() ||
      !divides(schedule::task_of(algorithm, request), {call.count, {}}))
    return {};
  std::optional<Written> w = written(algorithm, request, most_steps);
  if (!w) return {};
  TransportCapabilities used = paths;
  if (!alike_on_all(config, request) || w->ranks.size() != 1) used.round_bytes = 0;
  Joiner plain(*w, call, places, used);
  if (!hidden || !worth_showing(call, ranks) || plain.in_rounds()) return plain.joined();
  for (std::size_t i = 0; i < w->ranks.size(); ++i)
    w->programs[i] =
        schedule::stage_unreadable_buffers(w->task, w->ranks[i], w->programs[i], {.input = true, .output = true})
            .program;
  return Joiner(*w, call, places, {.lanes = paths.lanes}).joined();
}

}  // namespace trellis::ccl
