#include "sim/core/program/dependency_tracker.h"

namespace trellis::sim::core {

std::uint32_t processor_of(const NeuronCoreProgram& program, const Instruction& i, int rings) {
  if (!i.kind->dma) return static_cast<std::uint32_t>(stream_of(i));
  return static_cast<std::uint32_t>(program.cores * engine_count + i.core * rings + i.queue);
}

std::size_t processors(const NeuronCoreProgram& program, int rings) {
  return static_cast<std::size_t>(program.cores * (engine_count + rings));
}

InstructionAccess access_of(const NeuronCoreProgram& program, const Instruction& i, std::uint32_t processor,
                            std::uint32_t number) {
  const bool adds = i.engine == Engine::tensor && BoundInstruction(program, i).number(Key::accumulate) != 0;
  return {.processor = processor, .number = number, .adds = adds};
}

View whole_rows(const NeuronCoreProgram& program, View v) {
  const auto bytes = static_cast<std::int32_t>(program.buffers[static_cast<std::size_t>(v.buffer)].bytes);
  v.type = DType::u8;
  v.index = -1;
  v.offset = 0;
  v.dims = 1;
  v.dim[0] = {bytes, 1};
  return v;
}

// Instructions of one processor start and end in order, so one may overwrite without a wait what earlier ones read or
// wrote. It may read what they wrote only when they are done. Products accumulate in PSUM without a wait.
bool DependencyTracker::waits_for(const InstructionAccess& now, const InstructionAccess& before) {
  if (!now.writes && !before.writes) return false;
  if (now.processor != before.processor) return true;
  return !now.writes && before.writes && !now.adds;
}

}  // namespace trellis::sim::core
