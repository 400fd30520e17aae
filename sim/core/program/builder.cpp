#include "sim/core/program/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace trellis::sim::core {

Builder::Builder(std::string name, const ChipSpec& chip, std::uint8_t cores) : chip_(chip) {
  if (cores < 1 || cores > std::max(chip.logical_cores, 1))
    throw std::invalid_argument(
        fmt::format("{}: {} cores; a logical core of {} has {}", name, cores, chip.name, chip.logical_cores));
  program_.name = std::move(name);
  program_.cores = cores;
  const auto bank = static_cast<std::int64_t>(chip.memory.psum_bytes) / chip.memory.psum_banks;
  sbuf_.assign(cores, FreeSpace(static_cast<std::int64_t>(chip.memory.sbuf_bytes), 64));
  psum_.assign(cores, FreeSpace(static_cast<std::int64_t>(chip.memory.psum_bytes), bank));
  counts_.assign(processors(program_, chip.dma.rings), 0);
  known_.assign(static_cast<std::size_t>(cores * engine_count), std::vector<std::uint32_t>(counts_.size(), 0));
}

Operand Builder::hbm(std::string name, DType type, std::int64_t rows, std::int64_t columns, Role role) {
  if (rows < 1 || columns < 1 || rows > most_in_dim || columns > most_in_dim)
    throw std::invalid_argument(
        fmt::format("{}: {} rows of {} elements; expected 1 to {} of each", name, rows, columns, most_in_dim));
  const std::int64_t row = columns * static_cast<std::int64_t>(kernels::size_of(type));
  if (const double bytes = static_cast<double>(rows) * static_cast<double>(row); bytes > chip_.memory.hbm_bytes)
    throw std::invalid_argument(
        fmt::format("{}: {} rows of {} elements are {:.17g} bytes, and the HBM of {} has {:.17g}", name, rows, columns,
                    bytes, chip_.name, chip_.memory.hbm_bytes));
  const auto number = static_cast<std::int32_t>(program_.buffers.size());
  program_.buffers.push_back(
      {.name = std::move(name), .space = Space::hbm, .type = type, .role = role, .bytes = rows * row});
  return {{.buffer = number,
           .type = type,
           .rows = static_cast<std::int32_t>(rows),
           .row_stride = row,
           .dim = {Dim{static_cast<std::int32_t>(columns), 1}}}};
}

Operand Builder::input(std::string name, DType type, std::int64_t rows, std::int64_t columns) {
  return hbm(std::move(name), type, rows, columns, Role::input);
}
Operand Builder::output(std::string name, DType type, std::int64_t rows, std::int64_t columns) {
  return hbm(std::move(name), type, rows, columns, Role::output);
}
Operand Builder::scratch(std::string name, DType type, std::int64_t rows, std::int64_t columns) {
  return hbm(std::move(name), type, rows, columns, Role::internal);
}

Operand Builder::on_chip(std::string name, Space space, DType type, std::int64_t rows, std::int64_t columns,
                         std::uint8_t core) {
  if (core >= program_.cores) throw std::invalid_argument(fmt::format("{}: core {} of {}", name, core, program_.cores));
  if (rows < 1 || rows > chip_.memory.partitions || columns < 1 || columns > most_in_dim)
    throw std::invalid_argument(fmt::format("{}: {} rows of {} elements; expected 1 to {} rows of 1 to {}", name, rows,
                                            columns, chip_.memory.partitions, most_in_dim));
  FreeSpace& space_left = (space == Space::sbuf ? sbuf_ : psum_)[core];
  const std::int64_t bytes = columns * static_cast<std::int64_t>(kernels::size_of(type));
  const auto offset = space_left.take(bytes);
  if (!offset)
    throw std::invalid_argument(fmt::format("{}: no {} bytes a partition left in {}; the largest free piece has {}",
                                            name, bytes, core::name(space), space_left.largest()));
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

Operand Builder::tile(std::string name, DType type, std::int64_t rows, std::int64_t columns, std::uint8_t core) {
  return on_chip(std::move(name), Space::sbuf, type, rows, columns, core);
}
Operand Builder::psum(std::string name, DType type, std::int64_t rows, std::int64_t columns, std::uint8_t core) {
  return on_chip(std::move(name), Space::psum, type, rows, columns, core);
}

void Builder::free(const Operand& o) {
  const Buffer& b = program_.buffers[static_cast<std::size_t>(o.view.buffer)];
  const bool taken = b.space != Space::hbm && (b.space == Space::sbuf ? sbuf_ : psum_)[b.core].give(b.offset);
  if (!taken) throw std::invalid_argument(fmt::format("{} freed: it has no memory on chip", b.name));
}

void Builder::add(std::string_view kind, Engine engine, std::initializer_list<Operand> outputs,
                  std::vector<Operand> inputs, std::vector<Attribute> attributes, const Settings& settings) {
  Instruction i;
  i.kind = &kind_named(kind);
  i.engine = engine;
  i.core = settings.core;
  if (i.kind->dma) i.queue = static_cast<std::int16_t>(settings.ring >= 0 ? settings.ring : static_cast<int>(engine));
  i.views = {static_cast<std::uint32_t>(program_.views.size()),
             static_cast<std::uint32_t>(outputs.size() + inputs.size())};
  i.outputs = static_cast<std::uint32_t>(outputs.size());
  for (const Operand& o : outputs) program_.views.push_back(o.view);
  for (const Operand& o : inputs) program_.views.push_back(o.view);
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
  processor_.push_back(processor_of(program_, i, chip_.dma.rings));
  number_.push_back(++counts_[processor_.back()]);
  if (!by_hand) derive(i, at);
}

void Builder::derive(const Instruction& i, std::uint32_t at) {
  const auto stream = static_cast<std::uint32_t>(stream_of(i));
  const Call call(program_, i);
  Access access = access_of(program_, i, processor_[at], number_[at]);
  const auto touch = [&](const View& v, bool writes) {
    if (program_.buffers[static_cast<std::size_t>(v.buffer)].role == Role::input && !writes) return;
    access.writes = writes;
    dependencies_.touch(program_, v, access, [&](const Access& earlier) { need(stream, at, earlier); });
  };
  for (const View& v : call.inputs) touch(v, false);
  for (const View& v : call.outputs) touch(v, true);
}

void Builder::need(std::uint32_t stream, std::uint32_t at, const Access& earlier) {
  if (earlier.processor == processor_[at] && earlier.number == number_[at]) return;
  std::uint32_t& known = known_[stream][earlier.processor];
  if (known >= earlier.number) return;
  known = earlier.number;
  if (!needs_.empty() && needs_.back().instruction == at)
    for (auto n = needs_.rbegin(); n != needs_.rend() && n->instruction == at; ++n)
      if (n->processor == earlier.processor) {
        n->number = std::max(n->number, earlier.number);
        return;
      }
  needs_.push_back({at, earlier.processor, earlier.number});
}

std::int32_t Builder::semaphore(std::string name) {
  program_.semaphores.push_back(std::move(name));
  return static_cast<std::int32_t>(program_.semaphores.size()) - 1;
}

void Builder::wait(std::int32_t semaphore, std::int32_t value, std::int16_t index, std::int32_t index_scale) {
  waits_by_hand_.push_back({semaphore, value, index, index_scale});
}

void Builder::signal(std::int32_t semaphore, std::int32_t add) { signals_by_hand_.push_back({semaphore, add}); }

// Each processor gets one semaphore, raised only by instructions that another one waits for. As a processor finishes in
// order, the value says how many of those are done.
void Builder::write_semaphores() {
  std::vector<std::vector<std::uint32_t>> awaited(counts_.size());
  for (const Need& n : needs_) awaited[n.processor].push_back(n.number);
  std::vector<std::int32_t> semaphores(counts_.size(), -1);
  for (std::size_t p = 0; p < awaited.size(); ++p) {
    std::ranges::sort(awaited[p]);
    awaited[p].erase(std::unique(awaited[p].begin(), awaited[p].end()), awaited[p].end());
    if (awaited[p].empty()) continue;
    const auto engines = static_cast<std::size_t>(program_.cores * engine_count);
    const std::size_t core = p < engines ? p / engine_count : (p - engines) / static_cast<std::size_t>(chip_.dma.rings);
    const std::string prefix = program_.cores > 1 ? fmt::format("core{}_", core) : "";
    semaphores[p] = semaphore(
        p < engines ? prefix + std::string(name(static_cast<Engine>(p % engine_count)))
                    : fmt::format("{}ring{}", prefix, (p - engines) % static_cast<std::size_t>(chip_.dma.rings)));
  }
  std::size_t next = 0;
  for (std::uint32_t at = 0; at < program_.instructions.size(); ++at) {
    Instruction& i = program_.instructions[at];
    const std::vector<std::uint32_t>& mine = awaited[processor_[at]];
    const std::size_t first = next;
    while (next < needs_.size() && needs_[next].instruction == at) ++next;
    if (first != next) {
      i.waits = {static_cast<std::uint32_t>(program_.waits.size()), static_cast<std::uint32_t>(next - first)};
      for (std::size_t n = first; n < next; ++n) {
        const auto& list = awaited[needs_[n].processor];
        const auto value = std::ranges::upper_bound(list, needs_[n].number) - list.begin();
        program_.waits.push_back({semaphores[needs_[n].processor], static_cast<std::int32_t>(value)});
      }
    }
    if (std::ranges::binary_search(mine, number_[at])) {
      i.signals = {static_cast<std::uint32_t>(program_.signals.size()), 1};
      program_.signals.push_back({semaphores[processor_[at]], 1});
    }
  }
}

Program Builder::finish() {
  write_semaphores();
  return std::move(program_);
}

}  // namespace trellis::sim::core
