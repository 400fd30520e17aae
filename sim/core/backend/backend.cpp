#include "sim/core/backend/backend.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "sim/core/backend/list_scheduler.h"
#include "sim/core/backend/tile_placement.h"
#include "sim/core/program/semaphore_inserter.h"

namespace trellis::sim::core {
namespace {

std::vector<Instruction> reordered(const NeuronCoreProgram& p, const std::vector<std::uint32_t>& order) {
  std::vector<Instruction> all;
  all.reserve(order.size());
  for (const std::uint32_t at : order) all.push_back(p.instructions[at]);
  return all;
}

void link(BackEndResult& a, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& follows,
          SemaphoreInserter linker) {
  std::vector<std::uint32_t> number(follows.empty() ? 0 : a.program.instructions.size());
  for (std::uint32_t at = 0; at < a.program.instructions.size(); ++at) {
    linker.add(a.program, at);
    if (follows.empty()) continue;
    number[a.order[at]] = at;
    const auto first = std::lower_bound(follows.begin(), follows.end(), std::pair(a.order[at], 0U));
    for (auto f = first; f != follows.end() && f->first == a.order[at]; ++f)
      linker.follow(a.program, at, number[f->second]);
  }
  linker.finish(a.program);
}

// With the option `spill`, tiles of SBUF that do not fit all together are placed one by one, and some are spilled to
// HBM. PSUM's tiles cannot be spilled, as DMA does not reach PSUM: they are placed as without the option.
void place(BackEndResult& a, UnscheduledProgram& draft, const std::vector<std::uint32_t>& slots, const ChipSpec& chip,
           const BackEndOptions& options) {
  const TilePools tiles(draft, chip, a.order);
  a.most = {most_bytes(draft, tiles, MemorySpace::sbuf), most_bytes(draft, tiles, MemorySpace::psum)};
  if (!options.spill) return place_tiles(draft, tiles, tiles.slots(options.copies, slots), chip);
  if (a.most[0] <= static_cast<std::int64_t>(chip.memory.sbuf_bytes)) {
    try {
      return place_tiles(draft, tiles, tiles.slots(options.copies, slots), chip);
    } catch (const std::invalid_argument&) {  // enough room in all, but not in one piece
    }
  }
  a.spills = spill_tiles(draft, a.order, chip);
  const TilePools left(draft, chip, a.order);
  place_tiles(draft, left, left.slots(options.copies), chip);
}

}  // namespace

BackEndResult assemble(UnscheduledProgram draft, const ChipSpec& chip, const BackEndOptions& options) {
  BackEndResult a;
  std::vector<std::uint32_t> text(draft.program.instructions.size());
  std::iota(text.begin(), text.end(), 0);
  std::vector<bool> unordered = unordered_buffers(draft.program);
  const DependencyGraph graph = dependency_graph(draft, unordered);
  const TilePools as_written(draft, chip, text);
  const std::vector<std::uint32_t> slots = as_written.slots(options.copies);
  a.order = list_schedule(draft, graph, as_written, slots, chip,
                          {.window = options.window,
                           .fuse = options.fuse,
                           .regions = options.regions,
                           .critical_path = options.critical_path});
  a.written = static_cast<std::uint32_t>(a.order.size());
  place(a, draft, slots, chip, options);
  unordered.resize(draft.program.buffers.size(), false);
  a.program = std::move(draft.program);
  a.program.instructions = reordered(a.program, a.order);
  link(a, draft.follows, SemaphoreInserter(a.program.cores, chip, unordered));
  return a;
}

}  // namespace trellis::sim::core
