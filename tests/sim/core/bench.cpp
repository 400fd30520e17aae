#include "tests/sim/core/bench.h"

#include <cmath>
#include <stdexcept>

namespace trellis::sim::core {

View Bench::add(const Lie& lie) {
  if (memory_) throw std::logic_error("operands are added before memory is made");
  std::int64_t last = lie.before;
  for (const Dim& d : lie.dims) last += std::int64_t{d.count - 1} * d.stride;
  const auto size = static_cast<std::int64_t>(kernels::size_of(lie.type));
  const std::int64_t bytes = (last + 1) * size;
  View v{.buffer = static_cast<std::int32_t>(program.buffers.size()), .type = lie.type, .rows = lie.rows};
  v.dims = static_cast<std::uint8_t>(lie.dims.size());
  v.offset = lie.before * size;
  for (std::size_t d = 0; d < lie.dims.size(); ++d) v.dim[d] = lie.dims[d];
  CoreBuffer b{.name = "b" + std::to_string(v.buffer), .space = lie.space, .type = lie.type, .bytes = bytes};
  if (lie.space == MemorySpace::hbm) {
    v.row_stride = bytes;
    b.bytes = bytes * lie.rows;
  } else {
    std::int64_t& next = lie.space == MemorySpace::sbuf ? sbuf_ : psum_;
    b.partitions = lie.rows;
    b.offset = next;
    next += (bytes + 2047) / 2048 * 2048;
  }
  program.buffers.push_back(b);
  return v;
}

void Bench::set(std::string_view kind, Engine engine, std::vector<View> outputs, std::vector<View> inputs,
                std::vector<Attribute> attributes) {
  program.views.clear(), program.attributes.clear(), program.instructions.clear();
  append(kind, engine, std::move(outputs), std::move(inputs), std::move(attributes));
}

void Bench::append(std::string_view kind, Engine engine, std::vector<View> outputs, std::vector<View> inputs,
                   std::vector<Attribute> attributes, std::vector<SemaphoreWait> waits,
                   std::vector<SemaphoreSignal> signals) {
  const auto put = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
    return static_cast<std::uint32_t>(all.size() - more.size());
  };
  const auto count = [](const auto& some) { return static_cast<std::uint32_t>(some.size()); };
  NeuronCoreProgram& p = program;
  Instruction i;
  i.kind = &kind_named(kind);
  i.engine = engine;
  i.queue = i.kind->dma ? std::int16_t{0} : std::int16_t{-1};
  i.views = {put(p.views, outputs), count(outputs) + count(inputs)};
  put(p.views, inputs);
  i.outputs = count(outputs);
  i.attributes = {put(p.attributes, attributes), count(attributes)};
  i.waits = {put(p.waits, waits), count(waits)};
  i.signals = {put(p.signals, signals), count(signals)};
  p.instructions.push_back(i);
}

void Bench::run() {
  check(program, chip);
  memory().use_registers(registers.data());
  program.instructions.front().kind->run(call(), memory());
}

double Bench::cycles() const {
  const Engine e = program.instructions.front().engine;
  return in_seconds(cost().interval) * chip.engine[static_cast<std::size_t>(e)].clock;
}

std::vector<double> Bench::read(const View& v) {
  std::vector<double> all(static_cast<std::size_t>(v.rows * v.elements()));
  for (std::int64_t r = 0; r < v.rows; ++r) memory().read(v, r, all.data() + r * v.elements());
  return all;
}

void Bench::write(const View& v, const std::vector<double>& all) {
  for (std::int64_t r = 0; r < v.rows; ++r) memory().write(v, r, all.data() + r * v.elements());
}

std::vector<double> Bench::fill(const View& v, double most) {
  std::vector<double> all(static_cast<std::size_t>(v.rows * v.elements()));
  for (double& x : all)
    x = most > 0 ? std::floor(std::uniform_real_distribution<>(0, most)(random)) : std::normal_distribution<>()(random);
  write(v, all);
  return read(v);
}

}  // namespace trellis::sim::core
