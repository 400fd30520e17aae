#include "sim/core/program/program_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/refuse.h"

namespace trellis::sim::core {

ProgramBuilder::ProgramBuilder(std::string name, const ChipSpec& chip, std::uint8_t cores)
    : chip_(chip), linker_(cores, chip) {
  if (cores < 1 || cores > std::max(chip.logical_cores, 1))
    text::refuse("{}: {} cores; a logical core of {} has {}", name, cores, chip.name, chip.logical_cores);
  program_.name = std::move(name);
  program_.cores = cores;
  const auto bank = static_cast<std::int64_t>(chip.memory.psum_bytes) / chip.memory.psum_banks;
  sbuf_.assign(cores, FirstFitAllocator(static_cast<std::int64_t>(chip.memory.sbuf_bytes), 64));
  psum_.assign(cores, FirstFitAllocator(static_cast<std::int64_t>(chip.memory.psum_bytes), bank));
}

TensorOperand ProgramBuilder::hbm(std::string name, DType type, std::int64_t rows, std::int64_t columns,
                                  BufferRole role) {
  if (rows < 1 || columns < 1 || rows > most_in_dim || columns > most_in_dim)
    text::refuse("{}: {} rows of {} elements; expected 1 to {} of each", name, rows, columns, most_in_dim);
  const std::int64_t row = columns * static_cast<std::int64_t>(kernels::size_of(type));
  if (const double bytes = static_cast<double>(rows) * static_cast<double>(row); bytes > chip_.memory.hbm_bytes)
    text::refuse("{}: {} rows of {} elements are {:.17g} bytes, and the HBM of {} has {:.17g}", name, rows, columns,
                 bytes, chip_.name, chip_.memory.hbm_bytes);
  const auto number = static_cast<std::int32_t>(program_.buffers.size());
  program_.buffers.push_back(
      {.name = std::move(name), .space = MemorySpace::hbm, .type = type, .role = role, .bytes = rows * row});
  return {{.buffer = number,
           .type = type,
           .rows = static_cast<std::int32_t>(rows),
           .row_stride = row,
           .dim = {Dim{static_cast<std::int32_t>(columns), 1}}}};
}

TensorOperand ProgramBuilder::input(std::string name, DType type, std::int64_t rows, std::int64_t columns) {
  return hbm(std::move(name), type, rows, columns, BufferRole::input);
}
TensorOperand ProgramBuilder::output(std::string name, DType type, std::int64_t rows, std::int64_t columns) {
  return hbm(std::move(name), type, rows, columns, BufferRole::output);
}
TensorOperand ProgramBuilder::scratch(std::string name, DType type, std::int64_t rows, std::int64_t columns) {
  return hbm(std::move(name), type, rows, columns, BufferRole::internal);
}

TensorOperand ProgramBuilder::on_chip(std::string name, MemorySpace space, DType type, std::int64_t rows,
                                      std::int64_t columns, std::uint8_t core) {
  if (core >= program_.cores) text::refuse("{}: core {} of {}", name, core, program_.cores);
  if (rows < 1 || rows > chip_.memory.partitions || columns < 1 || columns > most_in_dim)
    text::refuse("{}: {} rows of {} elements; expected 1 to {} rows of 1 to {}", name, rows, columns,
                 chip_.memory.partitions, most_in_dim);
  FirstFitAllocator& space_left = (space == MemorySpace::sbuf ? sbuf_ : psum_)[core];
  const std::int64_t bytes = columns * static_cast<std::int64_t>(kernels::size_of(type));
  const auto offset = space_left.take(bytes);
  if (!offset)
    text::refuse("{}: no {} bytes a partition left in {}; the largest free piece has {}", name, bytes,
                 core::name(space), space_left.largest());
  const auto number = static_cast<std::int32_t>(program_.buffers.size());
  if (const int times = ++tiles_named_[name]; times > 1)
    name += fmt::format("_{}", times);  // each has a name of its own
  program_.buffers.push_back({.name = std::move(name),
                              .space = space,
                              .type = type,
                              .core = core,
                              .partitions = static_cast<std::int32_t>(rows),
                              .offset = *offset,
                              .bytes = bytes});
  return {{.buffer = number,
           .type = type,
           .rows = static_cast<std::int32_t>(rows),
           .dim = {Dim{static_cast<std::int32_t>(columns), 1}}}};
}

TensorOperand ProgramBuilder::tile(std::string name, DType type, std::int64_t rows, std::int64_t columns,
                                   std::uint8_t core) {
  return on_chip(std::move(name), MemorySpace::sbuf, type, rows, columns, core);
}
TensorOperand ProgramBuilder::psum(std::string name, DType type, std::int64_t rows, std::int64_t columns,
                                   std::uint8_t core) {
  return on_chip(std::move(name), MemorySpace::psum, type, rows, columns, core);
}

void ProgramBuilder::free(const TensorOperand& o) {
  const CoreBuffer& b = program_.buffers[static_cast<std::size_t>(o.view.buffer)];
  const bool taken =
      b.space != MemorySpace::hbm && (b.space == MemorySpace::sbuf ? sbuf_ : psum_)[b.core].give(b.offset);
  if (!taken) text::refuse("{} freed: it has no memory on chip", b.name);
}

void ProgramBuilder::add(std::string_view kind, Engine engine, std::initializer_list<TensorOperand> outputs,
                         std::vector<TensorOperand> inputs, std::vector<Attribute> attributes,
                         const CoreAndRing& settings) {
  Instruction i;
  i.kind = &kind_named(kind);
  i.engine = engine;
  i.core = settings.core;
  if (i.kind->dma) i.queue = static_cast<std::int16_t>(settings.ring >= 0 ? settings.ring : static_cast<int>(engine));
  i.views = {static_cast<std::uint32_t>(program_.views.size()),
             static_cast<std::uint32_t>(outputs.size() + inputs.size())};
  i.outputs = static_cast<std::uint32_t>(outputs.size());
  for (const TensorOperand& o : outputs) program_.views.push_back(o.view);
  for (const TensorOperand& o : inputs) program_.views.push_back(o.view);
  i.attributes = {static_cast<std::uint32_t>(program_.attributes.size()),
                  static_cast<std::uint32_t>(attributes.size())};
  program_.attributes.insert(program_.attributes.end(), attributes.begin(), attributes.end());
  const auto at = static_cast<std::uint32_t>(program_.instructions.size());
  const bool by_hand = !waits_by_hand_.empty() || !signals_by_hand_.empty();
  i.waits = {static_cast<std::uint32_t>(program_.waits.size()), static_cast<std::uint32_t>(waits_by_hand_.size())};
  i.signals = {static_cast<std::uint32_t>(program_.signals.size()),
               static_cast<std::uint32_t>(signals_by_hand_.size())};
  program_.waits.insert(program_.waits.end(), waits_by_hand_.begin(), waits_by_hand_.end());
  program_.signals.insert(program_.signals.end(), signals_by_hand_.begin(), signals_by_hand_.end());
  waits_by_hand_.clear();
  signals_by_hand_.clear();
  program_.instructions.push_back(i);
  linker_.add(program_, at, by_hand);
}

std::int32_t ProgramBuilder::semaphore(std::string name) {
  program_.semaphores.push_back(std::move(name));
  return static_cast<std::int32_t>(program_.semaphores.size()) - 1;
}

void ProgramBuilder::wait(std::int32_t semaphore, std::int32_t value, std::int16_t index, std::int32_t index_scale) {
  waits_by_hand_.push_back({semaphore, value, index, index_scale});
}

void ProgramBuilder::signal(std::int32_t semaphore, std::int32_t add) { signals_by_hand_.push_back({semaphore, add}); }

NeuronCoreProgram ProgramBuilder::finish() {
  linker_.finish(program_);
  return std::move(program_);
}

}  // namespace trellis::sim::core
