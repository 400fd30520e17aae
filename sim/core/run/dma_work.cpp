#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/core/run/instruction_cost.h"

namespace trellis::sim::core {
namespace {

// A row as a DMA engine sees it: contiguous runs of bytes.
struct Row {
  double bytes = 0;
  double pieces = 1;
};

Row row_of(const View& v) {
  const auto size = static_cast<double>(kernels::size_of(v.type));
  std::int64_t together = 1;
  int d = v.dims - 1;
  for (; d >= 0; --d) {
    const Dim& dim = v.dim[static_cast<std::size_t>(d)];
    if (dim.count != 1 && dim.stride != together) break;
    together *= dim.count;
  }
  const auto elements = static_cast<double>(v.elements());
  return {elements * size, elements / static_cast<double>(together)};
}

// How many rows of the view each engine serves: by partition on chip; evenly, in fractions, from HBM to HBM.
std::vector<double> rows_by_engine(const BoundInstruction& call, const ChipSpec& chip) {
  const View* on_chip = nullptr;
  for (const View& v : call.inputs)
    if (call.space(v) != MemorySpace::hbm) on_chip = &v;
  for (const View& v : call.outputs)
    if (call.space(v) != MemorySpace::hbm) on_chip = &v;
  const auto engines = static_cast<std::size_t>(chip.dma.engines);
  if (on_chip == nullptr)
    return std::vector<double>(engines, static_cast<double>(call.out().rows) / static_cast<double>(engines));
  std::vector<double> rows(engines, 0);
  const int each = std::max(1, chip.memory.partitions / chip.dma.engines);
  const std::int32_t first = call.buffer(*on_chip).partition + on_chip->row;
  for (std::int32_t r = first; r < first + on_chip->rows; ++r) rows[static_cast<std::size_t>(r / each) % engines] += 1;
  return rows;
}

// The factor by which a byte costs more than in a plain copy.
double slowness(const BoundInstruction& call, const ChipSpec& chip) {
  const std::string& kind = call.instruction.kind->name;
  if (kind == "dma_transpose") {
    const bool from_hbm = call.space(call.in()) == MemorySpace::hbm;
    return 1 / (from_hbm ? chip.dma.transpose_hbm : chip.dma.transpose_sbuf);
  }
  if (kind == "dma_compute") return static_cast<double>(call.inputs.size()) / 2 / chip.dma.compute_factor;
  return 1;
}

// One operand as a whole: the rows of its view, or for an indirect DMA as many as there are indices.
struct Whole {
  double bytes = 0, pieces = 0, descriptors = 0;
};

Whole whole_of(const BoundInstruction& call, const View& v, const ChipSpec& chip) {
  const Row row = row_of(v);
  const auto rows =
      static_cast<double>(call.instruction.kind->indirect != IndirectOperand::none ? call.inputs.back().rows : v.rows);
  return {rows * row.bytes, rows * row.pieces, rows * std::max(1.0, std::ceil(row.bytes / chip.dma.descriptor_most))};
}

}  // namespace

// The number of bytes, of contiguous pieces and of descriptors is each that of the operand with the most: the shapes of
// the two sides may differ, as in a transpose.
DmaWork dma_work(const BoundInstruction& call, const ChipSpec& chip) {
  const DmaSpec& dma = chip.dma;
  DmaWork work;
  Whole most;
  bool hbm = false;
  const auto side = [&](const View& v, double& through_hbm) {
    const Whole whole = whole_of(call, v, chip);
    most.bytes = std::max(most.bytes, whole.bytes);
    most.pieces = std::max(most.pieces, whole.pieces);
    most.descriptors = std::max(most.descriptors, whole.descriptors);
    if (call.space(v) != MemorySpace::hbm) return;
    hbm = true;
    through_hbm += whole.bytes;
  };
  for (const View& v : call.inputs) side(v, work.hbm_read);
  for (const View& v : call.outputs) side(v, work.hbm_written);

  const int sharing = std::max<int>(call.program.cores, 1) * dma.engines;
  const double stack = chip.memory.hbm_rate / chip.memory.hbm_stacks / sharing;
  const double rate = hbm ? std::min(dma.engine_rate, stack) : dma.engine_rate;
  const Time moved =
      std::max(dma.piece, transfer_time(most.bytes / std::max(1.0, most.pieces) * slowness(call, chip), rate));
  const double time = most.descriptors * static_cast<double>(dma.descriptor) + most.pieces * static_cast<double>(moved);

  const std::vector<double> rows = rows_by_engine(call, chip);
  const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
  const bool nothing = !(most.bytes > 0) || !(all > 0);  // all is masked out: the DMA only takes its turn in its ring
  for (const double r : rows)
    work.shares.push_back(nothing
                              ? DmaEngineShare{}
                              : DmaEngineShare{static_cast<Time>(std::ceil(r * (time / all))), r * (most.bytes / all)});
  if (nothing) work.shares.front().time = 1;
  work.bytes = most.bytes;
  work.descriptors = static_cast<std::uint64_t>(most.descriptors);
  const bool software = call.instruction.engine == Engine::gpsimd;
  work.trigger = software ? dma.trigger_software + static_cast<Time>(work.descriptors) * dma.write_descriptor
                          : dma.trigger_hardware;
  work.start = software ? dma.start_software : dma.start_hardware;
  return work;
}

}  // namespace trellis::sim::core
