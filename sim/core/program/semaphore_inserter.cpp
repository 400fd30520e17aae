#include "sim/core/program/semaphore_inserter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/program/instruction_kind.h"

namespace trellis::sim::core {

SemaphoreInserter::SemaphoreInserter(int cores, const ChipSpec& chip, std::vector<bool> unordered)
    : rings_(chip.dma.rings), unordered_(std::move(unordered)) {
  counts_.assign(static_cast<std::size_t>(cores * (engine_count + rings_)), 0);
  known_.assign(static_cast<std::size_t>(cores * engine_count), std::vector<std::uint32_t>(counts_.size(), 0));
}

void SemaphoreInserter::add(const NeuronCoreProgram& program, std::uint32_t at, bool by_hand) {
  const Instruction& i = program.instructions[at];
  processor_.push_back(processor_of(program, i, rings_));
  number_.push_back(++counts_[processor_.back()]);
  if (by_hand) return;
  const auto stream = static_cast<std::uint32_t>(stream_of(i));
  const BoundInstruction call(program, i);
  InstructionAccess access = access_of(program, i, processor_[at], number_[at]);
  const auto touch = [&](const View& v, bool writes) {
    const auto b = static_cast<std::size_t>(v.buffer);
    if (program.buffers[b].role == BufferRole::input && !writes) return;
    if (b < unordered_.size() && unordered_[b]) return;
    access.writes = writes;
    dependencies_.touch(program, v, access,
                        [&](const InstructionAccess& earlier) { need(stream, at, earlier.processor, earlier.number); });
  };
  each_touched(call, touch);
}

void SemaphoreInserter::follow(const NeuronCoreProgram& program, std::uint32_t at, std::uint32_t earlier) {
  const auto stream = static_cast<std::uint32_t>(stream_of(program.instructions[at]));
  need(stream, at, processor_[earlier], number_[earlier]);
}

void SemaphoreInserter::need(std::uint32_t stream, std::uint32_t at, std::uint32_t processor, std::uint32_t number) {
  if (processor == processor_[at] && number == number_[at]) return;
  std::uint32_t& known = known_[stream][processor];
  if (known >= number) return;
  known = number;
  if (!needs_.empty() && needs_.back().instruction == at)
    for (auto n = needs_.rbegin(); n != needs_.rend() && n->instruction == at; ++n)
      if (n->processor == processor) {
        n->number = std::max(n->number, number);
        return;
      }
  needs_.push_back({at, processor, number});
}

std::int32_t SemaphoreInserter::semaphore_for(NeuronCoreProgram& program, std::size_t processor) const {
  const auto rings = static_cast<std::size_t>(rings_);
  const auto engines = static_cast<std::size_t>(program.cores * engine_count);
  const bool engine = processor < engines;
  const std::size_t core = engine ? processor / engine_count : (processor - engines) / rings;
  const std::string prefix = program.cores > 1 ? fmt::format("core{}_", core) : "";
  program.semaphores.push_back(engine ? prefix + std::string(name(static_cast<Engine>(processor % engine_count)))
                                      : fmt::format("{}ring{}", prefix, (processor - engines) % rings));
  return static_cast<std::int32_t>(program.semaphores.size()) - 1;
}

// Each processor gets one semaphore, raised only by instructions that another one waits for. As a processor finishes in
// order, the value says how many of those are done.
void SemaphoreInserter::finish(NeuronCoreProgram& program) const {
  std::vector<std::vector<std::uint32_t>> awaited(counts_.size());
  for (const Need& n : needs_) awaited[n.processor].push_back(n.number);
  std::vector<std::int32_t> semaphores(counts_.size(), -1);
  for (std::size_t p = 0; p < awaited.size(); ++p) {
    std::ranges::sort(awaited[p]);
    awaited[p].erase(std::unique(awaited[p].begin(), awaited[p].end()), awaited[p].end());
    if (!awaited[p].empty()) semaphores[p] = semaphore_for(program, p);
  }
  std::size_t next = 0;
  for (std::uint32_t at = 0; at < program.instructions.size(); ++at) {
    Instruction& i = program.instructions[at];
    const std::vector<std::uint32_t>& mine = awaited[processor_[at]];
    const std::size_t first = next;
    while (next < needs_.size() && needs_[next].instruction == at) ++next;
    if (first != next) {
      i.waits = {static_cast<std::uint32_t>(program.waits.size()), static_cast<std::uint32_t>(next - first)};
      for (std::size_t n = first; n < next; ++n) {
        const auto& list = awaited[needs_[n].processor];
        const auto value = std::ranges::upper_bound(list, needs_[n].number) - list.begin();
        program.waits.push_back({semaphores[needs_[n].processor], static_cast<std::int32_t>(value)});
      }
    }
    if (std::ranges::binary_search(mine, number_[at])) {
      i.signals = {static_cast<std::uint32_t>(program.signals.size()), 1};
      program.signals.push_back({semaphores[processor_[at]], 1});
    }
  }
}

}  // namespace trellis::sim::core
