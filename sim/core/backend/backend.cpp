#include "sim/core/backend/backend.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/core/backend/order.h"
#include "sim/core/backend/places.h"
#include "sim/core/program/linker.h"

namespace trellis::sim::core {
namespace {

std::vector<Instruction> reordered(const Program& p, const std::vector<std::uint32_t>& order) {
  std::vector<Instruction> all;
  all.reserve(order.size());
  for (const std::uint32_t at : order) all.push_back(p.instructions[at]);
  return all;
}

void link(Assembled& a, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& follows, Linker linker) {
  std::vector<std::uint32_t> number(follows.empty() ? 0 : a.order.size());
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

}  // namespace

Assembled assemble(Draft draft, const ChipSpec& chip, const BackEndOptions& options) {
  Assembled a;
  std::vector<std::uint32_t> text(draft.program.instructions.size());
  std::iota(text.begin(), text.end(), 0);
  const std::vector<bool> unordered = unordered_buffers(draft.program);
  const DependencyGraph graph = dependency_graph(draft, unordered);
  const TileGroups as_written(draft, chip, text);
  const std::vector<std::uint32_t> slots = as_written.slots(options.copies);
  a.order = list_schedule(draft, graph, as_written, slots, chip, {options.window, options.critical_path});
  const TileGroups tiles(draft, chip, a.order);
  place_tiles(draft, tiles, tiles.slots(options.copies, slots), chip);
  a.most = {most_bytes(draft, tiles, Space::sbuf), most_bytes(draft, tiles, Space::psum)};
  a.program = std::move(draft.program);
  a.program.instructions = reordered(a.program, a.order);
  link(a, draft.follows, Linker(a.program.cores, chip, unordered));
  return a;
}

}  // namespace trellis::sim::core
