#include "sim/core/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/core/run/core_memory.h"
#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

constexpr std::size_t semaphores_a_core = 256;

void check_buffer(const NeuronCoreProgram& program, const ChipSpec& chip, const CoreBuffer& b) {
  const MemorySpec& m = chip.memory;
  if (b.bytes < 1 || b.offset < 0) text::refuse("{} bytes at {}; expected at least 1 at 0", b.bytes, b.offset);
  if (b.space == MemorySpace::hbm) {
    if (static_cast<double>(b.bytes) > m.hbm_bytes) text::refuse("HBM overflow: {} bytes of {}", b.bytes, m.hbm_bytes);
    return;
  }
  if (b.core >= program.cores) text::refuse("core: {}; the program has {}", b.core, program.cores);
  if (b.partition < 0 || b.partitions < 1 || std::int64_t{b.partition} + b.partitions > m.partitions)
    text::refuse("partitions: {} from {} on; there are {}", b.partitions, b.partition, m.partitions);
  const double most = b.space == MemorySpace::sbuf ? m.sbuf_bytes : m.psum_bytes;
  if (const double end = static_cast<double>(b.offset) + static_cast<double>(b.bytes); end > most)
    text::refuse("{} overflow: bytes {} to {} of {} in a partition", b.space == MemorySpace::sbuf ? "SBUF" : "PSUM",
                 b.offset, end - 1, most);
}

void check_program(const NeuronCoreProgram& program, const ChipSpec& chip) {
  if (program.cores < 1 || program.cores > std::max(chip.logical_cores, 1))
    text::refuse("{}: cores: {}; a logical core of {} has {}", program.name, program.cores, chip.name,
                 chip.logical_cores);
  if (program.semaphores.size() > semaphores_a_core * program.cores)
    text::refuse("{}: semaphores: {}; {} cores have {}", program.name, program.semaphores.size(), program.cores,
                 semaphores_a_core * program.cores);
  double hbm = 0;
  for (const CoreBuffer& b : program.buffers) {
    try {
      check_buffer(program, chip, b);
    } catch (const std::invalid_argument& e) {
      text::refuse("{}: buffer {}: {}", program.name, b.name, e.what());
    }
    if (b.space == MemorySpace::hbm) hbm += static_cast<double>(b.bytes);
  }
  if (hbm > chip.memory.hbm_bytes)
    text::refuse("{}: HBM overflow: {} bytes of {}", program.name, hbm, chip.memory.hbm_bytes);
}

void check_register(std::string_view what, double number) {
  if (number < 0 || number >= register_count)
    text::refuse("register: {} is {}; expected 0 to {}", what, number, register_count - 1);
}

void check_semaphore(const NeuronCoreProgram& program, std::int32_t semaphore) {
  if (semaphore < 0 || static_cast<std::size_t>(semaphore) >= program.semaphores.size())
    text::refuse("semaphore: {}; the program has {}", semaphore, program.semaphores.size());
}

void check_stream(const NeuronCoreProgram& program, const Instruction& i) {
  for (const SemaphoreWait& w : program.waits_of(i)) {
    check_semaphore(program, w.semaphore);
    if (w.index >= 0) check_register("the index of a wait", w.index);
    if (w.value < 0) text::refuse("semaphore: a wait for {}; expected at least 0", w.value);
  }
  for (const SemaphoreSignal& s : program.signals_of(i)) {
    check_semaphore(program, s.semaphore);
    if (s.add < 0)
      text::refuse("semaphore: {} raised by {}; expected at least 0",
                   program.semaphores[static_cast<std::size_t>(s.semaphore)], s.add);
  }
  for (const Attribute& a : program.attributes_of(i))
    if (a.key == Key::target || a.key == Key::source || a.key == Key::index) check_register(name(a.key), a.value);
  for (std::uint32_t v = 0; v < i.views.count; ++v)
    if (const View& view = program.views[i.views.first + v]; view.index >= 0)
      check_register("the index of an operand", view.index);
}

void check_instruction(const NeuronCoreProgram& program, const ChipSpec& chip, const Instruction& i) {
  if (i.core >= program.cores) text::refuse("core: {}; the program has {}", i.core, program.cores);
  const InstructionKind& kind = *i.kind;
  if (std::ranges::find(kind.engines, i.engine) == kind.engines.end()) {
    std::string engines;
    for (const Engine e : kind.engines) engines += fmt::format("{}{}", engines.empty() ? "" : ", ", name(e));
    text::refuse("engine: {}; expected {}", name(i.engine), engines);
  }
  if (chip.generation < kind.generation)
    text::refuse("generation: {} is NeuronCore-v{}; {} needs v{}", chip.name, chip.generation, kind.name,
                 kind.generation);
  if (kind.dma && (i.queue < 0 || i.queue >= chip.dma.rings))
    text::refuse("DMA ring: {}; expected 0 to {}", i.queue, chip.dma.rings - 1);
  if (!kind.dma && i.queue >= 0) text::refuse("DMA ring: {}, of an instruction that is no DMA", i.queue);
  check_stream(program, i);
  check_call(BoundInstruction(program, i), chip);
}

// Checks that each end_loop ends a loop of its stream, and that no loop is left open.
class Loops {
 public:
  explicit Loops(const NeuronCoreProgram& program)
      : program_(program), open_(static_cast<std::size_t>(program.cores * engine_count)) {}

  void visit(std::size_t at) {
    const Instruction& i = program_.instructions[at];
    auto& open = open_[stream_of(i)];
    if (i.kind->control == ControlFlow::loop) open.push_back(at);
    if (i.kind->control != ControlFlow::end_loop) return;
    if (open.empty()) text::refuse("loop: an end_loop of {} without a loop", name(i.engine));
    open.pop_back();
  }

  void end() const {
    for (const auto& open : open_)
      if (!open.empty()) text::refuse("{}: loop: no end_loop for it", place_of(program_, open.back()));
  }

 private:
  const NeuronCoreProgram& program_;
  std::vector<std::vector<std::size_t>> open_;
};

// Checks that one engine triggers all instructions of a ring: otherwise their order in the ring would depend on timing.
class Feeders {
 public:
  void visit(const Instruction& i) {
    if (!i.kind->dma) return;
    const Engine first = engines_.try_emplace({i.core, i.queue}, i.engine).first->second;
    if (first != i.engine)
      text::refuse("DMA ring: {} is fed by {} and {}; expected one engine", i.queue, name(first), name(i.engine));
  }

 private:
  std::map<std::pair<std::uint8_t, std::int16_t>, Engine> engines_;  // by core and ring
};

}  // namespace

std::string place_of(const NeuronCoreProgram& program, std::size_t at) {
  const Instruction& i = program.instructions[at];
  const std::string line = i.line == 0 ? "" : fmt::format(", line {}", i.line);
  return fmt::format("instruction {} ({}{})", at, i.kind->name, line);
}

void check(const NeuronCoreProgram& program, const ChipSpec& chip) {
  check_program(program, chip);
  Loops loops(program);
  Feeders feeders;
  for (std::size_t at = 0; at < program.instructions.size(); ++at) {
    try {
      check_instruction(program, chip, program.instructions[at]);
      loops.visit(at);
      feeders.visit(program.instructions[at]);
    } catch (const std::invalid_argument& e) {
      text::refuse("{}: {}: {}", program.name, place_of(program, at), e.what());
    }
  }
  loops.end();
}

}  // namespace trellis::sim::core
