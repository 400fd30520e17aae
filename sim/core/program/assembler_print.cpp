#include <fmt/format.h>

#include "sim/core/program/assembler.h"
#include "sim/core/program/instruction_kind.h"

namespace trellis::sim::core {
namespace {

void print_buffer(std::string& out, const CoreBuffer& b) {
  if (b.space == MemorySpace::hbm) {
    out += fmt::format("hbm {} {} bytes={}", b.name, kernels::name(b.type), b.bytes);
    if (b.role != BufferRole::internal) out += fmt::format(" {}", name(b.role));
  } else {
    out += fmt::format("{} {} {} core={} partitions={}+{} bytes={}+{}", name(b.space), b.name, kernels::name(b.type),
                       b.core, b.partition, b.partitions, b.offset, b.bytes);
  }
  out += '\n';
}

void print_view(std::string& out, const NeuronCoreProgram& p, const View& v) {
  const CoreBuffer& b = p.buffers[static_cast<std::size_t>(v.buffer)];
  out += fmt::format("{}[{}+{} @{}", b.name, v.row, v.rows, v.offset);
  for (int d = 0; d < v.dims; ++d) {
    const Dim& dim = v.dim[static_cast<std::size_t>(d)];
    out += fmt::format(" {}x{}", dim.count, dim.stride);
  }
  if (b.space == MemorySpace::hbm) out += fmt::format(" /{}", v.row_stride);
  if (v.index >= 0) out += fmt::format(" r{}*{}", v.index, v.index_scale);
  out += ']';
  if (v.type != b.type) out += fmt::format(":{}", kernels::name(v.type));
}

void print_views(std::string& out, const NeuronCoreProgram& p, std::span<const View> views) {
  for (std::size_t v = 0; v < views.size(); ++v) {
    out += v == 0 ? " " : ", ";
    print_view(out, p, views[v]);
  }
}

}  // namespace

std::string print(const NeuronCoreProgram& p, const Instruction& i) {
  std::string out = fmt::format("{} {}", i.kind->name, name(i.engine));
  if (i.core != 0) out += fmt::format(".{}", i.core);
  if (i.queue >= 0) out += fmt::format(" ring={}", i.queue);
  print_views(out, p, p.outputs(i));
  if (i.views.count > i.outputs) {
    out += " <-";
    print_views(out, p, p.inputs(i));
  }
  for (const Attribute& a : p.attributes_of(i)) {
    const auto words = words_of(a.key);
    std::size_t word = 0;
    while (word != words.size() && a.value != static_cast<double>(word)) ++word;
    if (word == words.size())
      out += fmt::format(" {}={}", name(a.key), a.value);
    else
      out += fmt::format(" {}={}", name(a.key), words[word]);
  }
  for (const SemaphoreWait& w : p.waits_of(i)) {
    out += fmt::format(" wait {}>={}", p.semaphores[static_cast<std::size_t>(w.semaphore)], w.value);
    if (w.index >= 0) out += fmt::format("+r{}*{}", w.index, w.index_scale);
  }
  for (const SemaphoreSignal& s : p.signals_of(i))
    out += fmt::format(" signal {}+{}", p.semaphores[static_cast<std::size_t>(s.semaphore)], s.add);
  return out;
}

std::string print(const NeuronCoreProgram& p) {
  std::string out = fmt::format("program {} cores={}\n", p.name, p.cores);
  for (const CoreBuffer& b : p.buffers) print_buffer(out, b);
  for (const std::string& s : p.semaphores) out += fmt::format("semaphore {}\n", s);
  for (const Instruction& i : p.instructions) {
    out += print(p, i);
    out += '\n';
  }
  return out;
}

}  // namespace trellis::sim::core
