// A NeuronCoreProgram: the instructions for the engines of a core, as values. The builder or the assembler makes one,
// run() runs it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/program/attributes.h"
#include "sim/core/program/view.h"

namespace trellis::sim::core {

// Each engine has its own instruction stream. Sync has no datapath: it waits and triggers.
enum class Engine : std::uint8_t { tensor, vector, scalar, gpsimd, sync };
inline constexpr int engine_count = 5;
std::string_view name(Engine);

// Waits until the semaphore is at least the value, plus a register times a scale in loops.
struct SemaphoreWait {
  std::int32_t semaphore = 0;
  std::int32_t value = 0;
  std::int16_t index = -1;
  std::int32_t index_scale = 0;
  // What the semaphore must have reached, with the registers as they are; a double, as products of 64 bits may wrap.
  double level(const std::int64_t* registers) const {
    return value + (index < 0 ? 0 : static_cast<double>(registers[index]) * index_scale);
  }
  bool operator==(const SemaphoreWait&) const = default;
};

// An instruction adds this to the semaphore when it has finished and its results are visible.
struct SemaphoreSignal {
  std::int32_t semaphore = 0;
  std::int32_t add = 1;
  bool operator==(const SemaphoreSignal&) const = default;
};

struct OffsetAndCount {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct InstructionKind;

struct Instruction {
  const InstructionKind* kind = nullptr;
  Engine engine = Engine::sync;
  std::uint8_t core = 0;
  std::int16_t queue = -1;    // of a DMA: which ring; -1: not a DMA
  OffsetAndCount views = {};  // outputs first
  std::uint32_t outputs = 0;
  OffsetAndCount attributes = {};
  OffsetAndCount waits = {};
  OffsetAndCount signals = {};
  std::uint32_t line = 0;  // of the source text; 0: none
};

// Index among all engines of a program's cores.
constexpr std::size_t stream_of(const Instruction& i) {
  return static_cast<std::size_t>(i.core) * engine_count + static_cast<std::size_t>(i.engine);
}

struct NeuronCoreProgram {
  std::string name;
  std::uint8_t cores = 1;  // physical cores of one logical core
  std::vector<CoreBuffer> buffers;
  std::vector<Instruction> instructions;  // in the order written; each engine runs its own in this order
  std::vector<View> views;
  std::vector<Attribute> attributes;
  std::vector<SemaphoreWait> waits;
  std::vector<SemaphoreSignal> signals;
  std::vector<std::string> semaphores;  // their names
  std::vector<std::string> lines;       // the source text of each Instruction::line, for people; may be empty

  std::span<const View> outputs(const Instruction& i) const { return {views.data() + i.views.first, i.outputs}; }
  std::span<const View> inputs(const Instruction& i) const {
    return {views.data() + i.views.first + i.outputs, i.views.count - i.outputs};
  }
  std::span<const Attribute> attributes_of(const Instruction& i) const {
    return {attributes.data() + i.attributes.first, i.attributes.count};
  }
  std::span<const SemaphoreWait> waits_of(const Instruction& i) const {
    return {waits.data() + i.waits.first, i.waits.count};
  }
  std::span<const SemaphoreSignal> signals_of(const Instruction& i) const {
    return {signals.data() + i.signals.first, i.signals.count};
  }
};

}  // namespace trellis::sim::core
