#include "sim/core/check/race_detector.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/program/assembler.h"
#include "sim/core/program/instruction_kind.h"

namespace trellis::sim::core {

RaceDetector::RaceDetector(const NeuronCoreProgram& program, const ChipSpec& chip)
    : program_(program),
      chip_(chip),
      counts_(processors(program, chip.dma.rings), 0),
      known_(static_cast<std::size_t>(program.cores * engine_count), Clock(counts_.size(), 0)),
      raises_(program.semaphores.size()),
      instructions_(counts_.size()) {}

// Joins into `clock` what had certainly finished when each awaited semaphore reached its value.
void RaceDetector::join_waits(const Instruction& i, const std::int64_t* registers, Clock& clock) const {
  for (const SemaphoreWait& w : program_.waits_of(i)) {
    const double level = w.level(registers);
    if (level <= 0) continue;
    for (const Raise& raise : raises_[static_cast<std::size_t>(w.semaphore)]) {
      for (std::size_t p = 0; p < clock.size(); ++p) clock[p] = std::max(clock[p], raise.clock[p]);
      if (static_cast<double>(raise.value) >= level) break;
    }
  }
}

void RaceDetector::issued(std::uint32_t at, const std::int64_t* registers, Time) {
  const Instruction& i = program_.instructions[at];
  Clock& clock = known_[stream_of(i)];
  join_waits(i, registers, clock);
  const std::uint32_t processor = processor_of(program_, i, chip_.dma.rings);
  const std::uint32_t number = ++counts_[processor];
  instructions_[processor].push_back(at);
  const BoundInstruction call(program_, i);
  InstructionAccess access = access_of(program_, i, processor, number);
  each_touched(call, [&](const View& v, bool writes) {
    access.writes = writes;
    touch(at, v, registers, access, clock);
  });
  Clock end = clock;
  end[processor] = number;
  flying_[at].emplace_back(number, std::move(end));
}

void RaceDetector::touch(std::uint32_t at, const View& view, const std::int64_t* registers, InstructionAccess access,
                         const Clock& clock) {
  const auto moved = view.index < 0 ? view : moved_by(program_, view, registers[view.index]);
  if (!moved) return;  // outside its buffer: unwritten_reads reports it, and a run that computes throws
  const View& v = *moved;
  dependencies_.touch(program_, v, access, [&](const InstructionAccess& earlier) {
    const bool itself = earlier.processor == access.processor && earlier.number == access.number;
    if (!itself && clock[earlier.processor] < earlier.number) report(at, access.writes, v, earlier);
  });
}

std::string RaceDetector::described(std::uint32_t at) const {
  const Instruction& i = program_.instructions[at];
  const std::string where = i.line != 0 ? fmt::format("line {}", i.line) : fmt::format("instruction {}", at);
  return fmt::format("{} ({} on {}{})", where, i.kind->name, name(i.engine),
                     i.kind->dma ? fmt::format(", ring {}", i.queue) : "");
}

void RaceDetector::report(std::uint32_t at, bool writes, const View& v, const InstructionAccess& earlier) {
  const std::uint32_t other = instructions_[earlier.processor][earlier.number - 1];
  if (races_.size() >= most_races || !reported_.emplace(std::pair{at, other}, true).second) return;
  races_.push_back(fmt::format("{} {} {} that {} {}, and no semaphore puts them in order", described(at),
                               writes ? "writes" : "reads", program_.buffers[static_cast<std::size_t>(v.buffer)].name,
                               described(other), earlier.writes ? "writes" : "reads"));
}

void RaceDetector::finished(std::uint32_t at, Time) {
  auto& ends = flying_[at];
  const Clock clock = std::move(ends.front().second);
  ends.erase(ends.begin());
  for (const SemaphoreSignal& s : program_.signals_of(program_.instructions[at])) {
    auto& raises = raises_[static_cast<std::size_t>(s.semaphore)];
    raises.push_back({(raises.empty() ? 0 : raises.back().value) + s.add, clock});
  }
}

std::vector<std::string> races(const NeuronCoreProgram& program, const ChipSpec& chip) {
  RaceDetector detector(program, chip);
  run(program, chip, {.observer = &detector});
  return detector.races();
}

}  // namespace trellis::sim::core
