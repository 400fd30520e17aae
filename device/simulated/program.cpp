#include "device/simulated/program.h"

#include <algorithm>
#include <cstring>

#include "device/backends.h"
#include "device/neff/neff.h"
#include "sim/core/check/check.h"
#include "sim/core/program/assembler.h"
#include "sim/core/run/run.h"
#include "sim/hardware/timeline/perfetto.h"
#include "text/refuse.h"

namespace trellis::device {

using sim::core::BufferRole;
using sim::core::CoreBuffer;

SimulatedProgram::SimulatedProgram(std::span<const std::byte> container, const sim::ChipSpec& chip, int logical_size,
                                   bool timing_only, std::shared_ptr<SimulatedClocks> clocks)
    : chip_(chip), timing_only_(timing_only), clocks_(std::move(clocks)) {
  const Neff neff = read_neff(container);
  program_ = sim::core::parse(program_of(neff));
  if (program_.cores > logical_size)
    text::refuse("{}: it is for {} physical cores; a logical core here has {}", program_.name, program_.cores,
                 logical_size);
  sim::core::check(program_, chip_);
  for (const CoreBuffer& b : program_.buffers)
    if (b.space == sim::core::MemorySpace::hbm && b.role != BufferRole::internal)
      operands_.push_back({b.name, static_cast<std::size_t>(b.bytes), b.type, b.role == BufferRole::output});
}

void SimulatedProgram::run(const std::vector<Binding>& bindings, Stream* stream) {
  check_bindings(name(), operands_, bindings);
  if (stream == nullptr) return compute(bindings);
  stream->submit([this, bindings] { compute(bindings); });
}

std::string SimulatedProgram::profile() const {
  sim::Timeline timeline;
  sim::core::run(program_, chip_, {.timeline = &timeline});
  return sim::perfetto(timeline);
}

void SimulatedProgram::compute(const std::vector<Binding>& bindings) {
  if (timing_only_) {
    const Time took = sim::core::run(program_, chip_).time;
    time_ = took;
    return clocks_->charge(took);
  }
  sim::core::CoreMemory memory(program_, chip_);
  const auto each = [&](bool outputs, auto copy) {
    for (const ProgramOperand& o : operands_)
      if (o.output == outputs && o.bytes != 0)
        copy(memory.hbm(o.name).data(), std::ranges::find(bindings, o.name, &Binding::name)->data, o.bytes);
  };
  each(false, [](std::byte* inside, void* bound, std::size_t n) { std::memcpy(inside, bound, n); });
  const Time took = sim::core::run(program_, chip_, {.memory = &memory}).time;
  each(true, [](std::byte* inside, void* bound, std::size_t n) { std::memcpy(bound, inside, n); });
  time_ = took;
  clocks_->charge(took);
}

}  // namespace trellis::device
