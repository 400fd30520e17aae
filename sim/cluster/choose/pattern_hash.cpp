#include "sim/cluster/choose/pattern_hash.h"

namespace trellis::sim {

PatternHash pattern_hash(const CompiledSchedule& pattern) {
  PatternHash hash{0xcbf29ce484222325, 0x9e3779b97f4a7c15};  // FNV-1a, and the same with other constants
  const auto add = [&](std::int64_t value) {
    hash.first = (hash.first ^ static_cast<std::uint64_t>(value)) * 0x100000001b3;
    hash.second = (hash.second ^ static_cast<std::uint64_t>(value)) * 0x9fb21c651e98df25;
    hash.second ^= hash.second >> 29;
  };
  for (const schedule::SymmetryAxis& axis : pattern.symmetry().axes) add(static_cast<int>(axis.kind)), add(axis.size);
  add(pattern.task().pieces);
  for (const RankClassProgram& c : pattern.classes()) {
    add(c.representative);
    for (const Rank peer : c.peers) add(peer);
    for (const Move& m : c.moves) {
      for (const std::int64_t value : {std::int64_t{m.waits}, std::int64_t{m.chunks}, std::int64_t{m.peer},
                                       std::int64_t{m.second}, std::int64_t{m.arrival}, std::int64_t{m.second_arrival},
                                       std::int64_t{m.sources}, std::int64_t{m.summed}, std::int64_t{m.step}})
        add(value);
      add(m.adds | m.copies_twice << 1 | m.staged << 2 | m.forwards << 3 | m.channel << 4);
    }
    for (const DependentMove& f : c.followers) add(f.move), add(f.peer);
    for (const std::uint32_t begin : c.begin) add(begin);
  }
  return hash;
}

}  // namespace trellis::sim
