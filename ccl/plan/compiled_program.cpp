#include "ccl/plan/compiled_program.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "schedule/proof/fifo_order.h"

namespace trellis::ccl {
namespace {

using schedule::End;
using schedule::Op;
using schedule::Program;
using schedule::Slice;
using schedule::Step;

// A message of a line. lines_of() sorts a line's messages by channel and tag.
struct Message {
  std::uint32_t step;
  std::int32_t channel;
  std::int32_t tag;
};
using Lines = std::map<std::tuple<bool, Rank, std::int32_t>, std::vector<Message>>;  // true: sends

// Groups the messages by line (direction, peer and lane). Both ends of a line sort its messages by the same key, and so
// list them in the same order.
Lines lines_of(const Program& program, int lanes) {
  Lines lines;
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const auto add = [&](const End& end) {
      lines[{schedule::sends(step.op), end.peer, step.channel % lanes}].push_back({i, step.channel, end.tag});
    };
    if (step.op == Op::send && step.second.peer >= 0) add(step.second);
    if (schedule::sends(step.op) || schedule::receives(step.op)) add(step.end);
  }
  for (auto& [key, messages] : lines)
    std::ranges::sort(messages, {}, [](const Message& m) { return schedule::place_in_queue(m.channel, m.tag); });
  return lines;
}

class Compiler {
 public:
  Compiler(const Program& program, const ChunkLayout& layout) : program_(program), layout_(layout) {}

  CompiledProgram done(int lanes, const ProgramContributors* origins) {
    out_.steps.resize(program_.steps.size());
    out_.ahead.resize(program_.steps.size());
    for (std::uint32_t i = 0; i < program_.steps.size(); ++i) flatten(i);
    follow();
    for (const auto& [key, messages] : lines_of(program_, lanes)) {
      const auto& [sends, peer, lane] = key;
      const auto first = static_cast<std::uint32_t>(out_.messages.size());
      for (const Message& m : messages) out_.messages.push_back(m.step);
      out_.lines.push_back({peer, lane, !sends, first, static_cast<std::uint32_t>(messages.size())});
    }
    if (origins != nullptr) trace(*origins);
    out_.scratch_elements = layout_.elements(schedule::Buffer::scratch);
    out_.input_elements = layout_.elements(schedule::Buffer::input);
    out_.output_elements = layout_.elements(schedule::Buffer::output);
    return std::move(out_);
  }

 private:
  BufferRange place(const Slice& slice) const {
    const ChunkLayout::Run run = layout_.of(slice);
    return {slice.buffer, run.first, run.elements};
  }

  void flatten(std::uint32_t i) {
    const Step& step = program_.steps[i];
    CompiledStep& flat = out_.steps[i];
    flat.op = step.op;
    flat.origin = static_cast<std::int32_t>(i);
    if (schedule::reads(step.op)) flat.from = place(step.from);
    if (schedule::writes(step.op)) flat.to = place(step.to);
    flat.further = static_cast<std::uint32_t>(out_.places.size());
    for (const Slice& more : program_.further(step)) out_.places.push_back(place(more));
    flat.further_count = static_cast<std::uint32_t>(out_.places.size()) - flat.further;
    out_.ahead[i] = {.waits = static_cast<std::uint32_t>(program_.after(step).size()),
                     .ends = step.op == Op::send && step.second.peer >= 0 ? 2U : 1U};
    const bool local = !schedule::sends(step.op) && !schedule::receives(step.op);
    if (local && out_.ahead[i].waits == 0) out_.first.push_back(i);
  }

  schedule::Range runs(const Slice& slice, const std::vector<ChunkContributors>& origins) {
    const auto first = static_cast<std::uint32_t>(out_.runs.size());
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(origins.size()); ++i) {
      const ChunkContributors& origin = origins[static_cast<std::size_t>(i)];
      ContributorRun run{.elements = layout_.of({slice.first + i, 1, slice.buffer}).elements,
                         .of = origin.of,
                         .rounds = origin.rounds};
      if (origin.of != 0) run.first = layout_.of({origin.chunk, 1, schedule::Buffer::input}).first;
      ContributorRun* const last = out_.runs.size() > first ? &out_.runs.back() : nullptr;
      if (last != nullptr && last->of == run.of && last->rounds == run.rounds &&
          (run.of == 0 || last->first + last->elements == run.first))
        last->elements += run.elements;
      else
        out_.runs.push_back(run);
    }
    return {first, static_cast<std::uint32_t>(out_.runs.size()) - first};
  }

  void trace(const ProgramContributors& origins) {
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      const StepContributors& seen = origins.steps[i];
      out_.step_runs.push_back({.from = runs(step.from, seen.from),
                                .to = runs(step.to, seen.to),
                                .further = static_cast<std::uint32_t>(out_.further_runs.size())});
      for (std::size_t k = 0; k < seen.further.size(); ++k)
        out_.further_runs.push_back(runs(program_.further(step)[k], seen.further[k]));
    }
    out_.output_runs = runs({0, 0, schedule::Buffer::output}, origins.output);
  }

  void follow() {
    std::vector<std::vector<std::uint32_t>> follows(program_.steps.size());
    for (std::uint32_t i = 0; i < program_.steps.size(); ++i)
      for (std::int32_t before : program_.after(program_.steps[i]))
        follows[static_cast<std::size_t>(before)].push_back(i);
    for (std::size_t i = 0; i < follows.size(); ++i) {
      out_.steps[i].follows = static_cast<std::uint32_t>(out_.followers.size());
      out_.steps[i].follow_count = static_cast<std::uint32_t>(follows[i].size());
      out_.followers.insert(out_.followers.end(), follows[i].begin(), follows[i].end());
    }
  }

  const Program& program_;
  const ChunkLayout& layout_;
  CompiledProgram out_;
};

}  // namespace

CompiledProgram compile(const schedule::Task& task, const Program& program, Rank rank, const BlockCounts& counts,
                        std::size_t element, const TransportCapabilities& paths, const ProgramContributors* origins) {
  constexpr std::size_t line = 64;
  const ChunkLayout layout(task, program, rank, counts, line / element);
  CompiledProgram compiled = Compiler(program, layout).done(paths.lanes, origins);
  if (paths.round_bytes == 0 || origins != nullptr) return compiled;
  ExchangeRounds rounds = rounds_of(compiled, program, rank, task.ranks);
  if (rounds.bytes(largest_chunk(task, counts.block, line / element) * element) <= paths.round_bytes)
    compiled.rounds = std::move(rounds);
  return compiled;
}

}  // namespace trellis::ccl
