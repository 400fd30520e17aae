#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "sim/core/program/instruction_kind.h"
#include "sim/core/run/core_simulator.h"

namespace trellis::sim::core {

CoreSimulator::CoreSimulator(const NeuronCoreProgram& program, const ChipSpec& chip, const RunOptions& options)
    : program_(program),
      chip_(chip),
      options_(options),
      rings_(chip, program.cores, queue_),
      streams_(static_cast<std::size_t>(program.cores * engine_count)),
      semaphores_(program.semaphores.size()),
      sbuf_port_(program.cores, 0),
      psum_port_(program.cores, 0) {
  for (Stream& s : streams_) s.registers.resize(register_count);
  prepare();
  if (options_.timeline != nullptr) prepare_tracks();
}

void CoreSimulator::prepare() {
  prepared_.reserve(program_.instructions.size());
  std::array<std::pair<const InstructionKind*, CostRow>, engine_count> rows =
      {};  // by engine: the kind looked up last, and its costs
  for (std::uint32_t at = 0; at < program_.instructions.size(); ++at) {
    const Instruction& i = program_.instructions[at];
    const BoundInstruction call(program_, i);
    Prepared p;
    if (i.kind->dma) {
      p.work = static_cast<std::int32_t>(works_.size());
      works_.push_back(dma_work(call, chip_));
      p.cost.interval = p.cost.latency = works_.back().trigger;
    } else {
      auto& [kind, row] = rows[static_cast<std::size_t>(i.engine)];
      if (kind != i.kind) {
        kind = i.kind;
        row = chip_.cost(kind->name, static_cast<int>(i.engine));
      }
      p.cost = cost_of(call, chip_, row);
      p.table = table_of(call);
      if (i.engine == Engine::tensor && !call.inputs.empty())
        p.rows = static_cast<std::int16_t>(std::min<std::int64_t>(chip_.tensor.rows, call.in(0).rows));
    }
    if (options_.timeline != nullptr) {
      p.label = options_.timeline->label_of(label_of(i));
    }
    prepared_.push_back(p);
    streams_[stream_of(i)].order.push_back(at);
  }
}

// The instruction's kind, with the line of the source that it comes from, if that is known, or else its first operand.
std::string CoreSimulator::label_of(const Instruction& i) const {
  if (i.line < program_.lines.size()) return fmt::format("{}: {}", i.kind->name, program_.lines[i.line]);
  if (i.views.count == 0) return i.kind->name;
  return fmt::format("{} {}", i.kind->name,
                     program_.buffers[static_cast<std::size_t>(program_.views[i.views.first].buffer)].name);
}

// Functions that Scalar computes without a table do not change the table that is loaded.
std::int16_t CoreSimulator::table_of(const BoundInstruction& call) const {
  if (call.instruction.engine != Engine::scalar || !call.has(Key::func)) return -1;
  switch (static_cast<ActivationFunction>(call.number(Key::func))) {
    case ActivationFunction::copy:
    case ActivationFunction::identity:
    case ActivationFunction::square:
    case ActivationFunction::relu:
    case ActivationFunction::abs:
    case ActivationFunction::sign:
      return -1;
    default:
      return static_cast<std::int16_t>(call.number(Key::func));
  }
}

// Adds to the timeline a track for each engine and ring that the program uses, and a counter for each semaphore.
void CoreSimulator::prepare_tracks() {
  Timeline& t = *options_.timeline;
  std::vector<bool> rings(static_cast<std::size_t>(program_.cores * chip_.dma.rings), false);
  for (const Instruction& i : program_.instructions)
    if (i.kind->dma) rings[static_cast<std::size_t>(i.core * chip_.dma.rings + i.queue)] = true;
  ring_tracks_.resize(rings.size());
  for (std::uint8_t core = 0; core < program_.cores; ++core) {
    const std::string group = fmt::format("core {}", core);
    for (int e = 0; e < engine_count; ++e) {
      Stream& s = streams_[static_cast<std::size_t>(core * engine_count + e)];
      if (!s.order.empty()) s.track = t.track(group, std::string(name(static_cast<Engine>(e))));
    }
    for (int ring = 0; ring < chip_.dma.rings; ++ring) {
      const auto at = static_cast<std::size_t>(core * chip_.dma.rings + ring);
      if (rings[at]) ring_tracks_[at] = t.track(group, fmt::format("dma ring {}", ring));
    }
  }
  for (std::size_t s = 0; s < semaphores_.size(); ++s)
    semaphores_[s].counter = t.counter("semaphores", program_.semaphores[s]);
}

// What the stream waits for, and who could still provide it.
std::string CoreSimulator::stuck_sentence(std::size_t number) const {
  const Stream& s = streams_[number];
  const Instruction& i = program_.instructions[s.order[s.next]];
  const SemaphoreWait* w = unmet(s, i);
  const auto who = [](std::size_t n) {
    return fmt::format("core {} {}", n / engine_count, name(static_cast<Engine>(n % engine_count)));
  };
  std::string text = fmt::format(
      "{} at its instruction {} ({}{}) waits for {} to be {}, and it is {}", who(number), s.next, i.kind->name,
      i.line != 0 ? fmt::format(", line {}", i.line) : "", program_.semaphores[static_cast<std::size_t>(w->semaphore)],
      w->level(s.registers.data()), semaphores_[static_cast<std::size_t>(w->semaphore)].value);
  for (std::size_t other = 0; other < streams_.size(); ++other) {
    const Stream& o = streams_[other];
    const auto again = std::ranges::find_if(o.loops, [](const Loop& loop) { return loop.left > 0; });
    for (std::size_t at = again != o.loops.end() ? again->first : o.next; at < o.order.size(); ++at)
      for (const SemaphoreSignal& signal : program_.signals_of(program_.instructions[o.order[at]]))
        if (signal.semaphore == w->semaphore)
          return text + fmt::format(", which {} would raise at its instruction {}", who(other), at);
  }
  return text + ", and nobody raises it any more";
}

void CoreSimulator::fail_stuck() const {
  std::string text = fmt::format("{}: can never end:", program_.name);
  for (std::size_t s = 0; s < streams_.size(); ++s)
    if (streams_[s].next < streams_[s].order.size()) text += fmt::format("\n  {}", stuck_sentence(s));
  throw std::invalid_argument(text);
}

}  // namespace trellis::sim::core
