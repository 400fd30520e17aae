#include "sim/core/backend/tile_pools.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>

namespace trellis::sim::core {
namespace {

constexpr std::int64_t sbuf_unit = 64;
constexpr std::size_t most_groups_tried_alone = 64;

std::int64_t bank_of(const ChipSpec& chip) {
  return static_cast<std::int64_t>(chip.memory.psum_bytes) / chip.memory.psum_banks;
}

std::int64_t dealt(const CoreBuffer& b, const ChipSpec& chip) {
  if (b.space == MemorySpace::psum) return psum_piece(b.bytes, chip);
  return (b.bytes + sbuf_unit - 1) / sbuf_unit * sbuf_unit;
}

std::int64_t capacity(MemorySpace space, const ChipSpec& chip) {
  return static_cast<std::int64_t>(space == MemorySpace::psum ? chip.memory.psum_bytes : chip.memory.sbuf_bytes);
}

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

std::int64_t psum_piece(std::int64_t bytes, const ChipSpec& chip) {
  const std::int64_t bank = bank_of(chip);
  if (bytes > bank) return (bytes + bank - 1) / bank * bank;
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(bytes, psum_unit))));
}

std::vector<Lifetime> lifetimes(const NeuronCoreProgram& p, std::span<const std::uint32_t> order) {
  std::vector<Lifetime> lives(p.buffers.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) {
    const Instruction& i = p.instructions[order[at]];
    for (std::uint32_t v = 0; v < i.views.count; ++v) {
      Lifetime& life = lives[static_cast<std::size_t>(p.views[i.views.first + v].buffer)];
      life.first = std::min(life.first, at);
      life.last = at;
    }
  }
  return lives;
}

TilePools::TilePools(const UnscheduledProgram& draft, const ChipSpec& chip, std::span<const std::uint32_t> order)
    : chip_(chip), lives_(lifetimes(draft.program, order)), group_of_(draft.program.buffers.size(), -1) {
  std::map<std::tuple<std::int32_t, MemorySpace, std::uint8_t, std::int64_t>, std::int32_t> numbers;
  std::vector<std::pair<std::uint32_t, std::int32_t>> begins, ends;  // place in the order, buffer
  for (std::size_t b = 0; b < group_of_.size(); ++b) {
    const CoreBuffer& buffer = draft.program.buffers[b];
    if (buffer.space == MemorySpace::hbm || !lives_[b].used()) continue;
    if (draft.placed[b]) {
      fixed_.push_back({buffer.space, buffer.core, buffer.offset, buffer.offset + buffer.bytes});
      continue;
    }
    const std::int64_t bytes = dealt(buffer, chip);
    const auto [found, fresh] = numbers.try_emplace({draft.sites[b], buffer.space, buffer.core, bytes},
                                                    static_cast<std::int32_t>(groups_.size()));
    if (fresh)
      groups_.push_back({.space = buffer.space, .core = buffer.core, .bytes = bytes, .example = static_cast<int>(b)});
    TilePool& group = groups_[static_cast<std::size_t>(found->second)];
    ++group.tiles;
    group.span.first = std::min(group.span.first, lives_[b].first);
    group.span.last = std::max(group.span.last, lives_[b].last);
    group_of_[b] = found->second;
    begins.emplace_back(lives_[b].first, found->second);
    ends.emplace_back(lives_[b].last, found->second);
  }
  std::ranges::sort(begins);
  std::ranges::sort(ends);
  std::vector<std::uint32_t> live(groups_.size(), 0);
  std::size_t ended = 0;
  for (const auto& [at, group] : begins) {
    while (ended < ends.size() && ends[ended].first < at) --live[static_cast<std::size_t>(ends[ended++].second)];
    const auto g = static_cast<std::size_t>(group);
    groups_[g].most_live = std::max(groups_[g].most_live, ++live[g]);
  }
}

std::vector<std::uint32_t> TilePools::least_slots() const {
  std::vector<std::uint32_t> slots;
  for (const TilePool& g : groups_) slots.push_back(g.most_live);
  return slots;
}

// Places the largest group first, each at the lowest address that no group alive at the same time holds.
std::vector<std::int64_t> TilePools::packed(std::span<const std::uint32_t> slots) const {
  std::vector<std::size_t> by_size(groups_.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  const auto size = [&](std::size_t g) { return groups_[g].bytes * slots[g]; };
  std::ranges::stable_sort(by_size, [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  std::vector<std::int64_t> at(groups_.size(), -1);
  std::vector<std::pair<std::int64_t, std::int64_t>> held;
  for (std::size_t n = 0; n < by_size.size(); ++n) {
    const std::size_t g = by_size[n];
    held.clear();
    for (std::size_t m = 0; m < n; ++m) {
      const std::size_t h = by_size[m];
      if (groups_[h].space == groups_[g].space && groups_[h].core == groups_[g].core &&
          meet(groups_[h].span, groups_[g].span))
        held.emplace_back(at[h], at[h] + size(h));
    }
    for (const Fixed& f : fixed_)
      if (f.space == groups_[g].space && f.core == groups_[g].core) held.emplace_back(f.first, f.last);
    std::ranges::sort(held);
    const bool psum = groups_[g].space == MemorySpace::psum;
    const std::int64_t unit = psum ? std::min(groups_[g].bytes, bank_of(chip_)) : sbuf_unit;
    std::int64_t place = 0;
    for (const auto& [first, last] : held) {
      if (first - place >= size(g)) break;
      place = std::max(place, (last + unit - 1) / unit * unit);
    }
    if (place + size(g) > capacity(groups_[g].space, chip_)) return {};
    at[g] = place;
  }
  return at;
}

// Halves the slots of the group that takes most memory until all fit. If not even one slot of each group fits, returns
// the slots unchanged.
std::vector<std::uint32_t> TilePools::fewer(std::vector<std::uint32_t> slots) const {
  const std::vector<std::uint32_t> before = slots;
  while (packed(slots).empty()) {
    std::size_t most = groups_.size();
    double share = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const double its =
          static_cast<double>(groups_[g].bytes * slots[g]) / static_cast<double>(capacity(groups_[g].space, chip_));
      if (slots[g] > 1 && its > share) std::tie(most, share) = std::pair(g, its);
    }
    if (most == groups_.size()) return before;
    slots[most] /= 2;
  }
  return slots;
}

std::vector<std::uint32_t> TilePools::slots(int copies, std::span<const std::uint32_t> wanted) const {
  std::vector<std::uint32_t> slots = least_slots();
  if (groups_.empty()) return slots;
  if (packed(slots).empty()) return fewer(slots);
  if (!wanted.empty()) {
    std::vector<std::uint32_t> both = slots;
    for (std::size_t g = 0; g < both.size(); ++g) both[g] = std::max(both[g], wanted[g]);
    if (!packed(both).empty()) slots = both;
  }
  const auto more = [&](std::size_t g, std::uint32_t turn) {
    return std::min(groups_[g].tiles, (groups_[g].most_live * (4 + turn) + 3) / 4);
  };
  for (std::uint32_t turn = 1; turn <= 4 * (static_cast<std::uint32_t>(copies) - 1); ++turn) {
    std::vector<std::uint32_t> raised = slots;
    for (std::size_t g = 0; g < groups_.size(); ++g) raised[g] = std::max(raised[g], more(g, turn));
    if (raised == slots) continue;
    if (!packed(raised).empty()) {
      slots = raised;
      continue;
    }
    if (groups_.size() > most_groups_tried_alone) break;
    bool any = false;
    std::vector<std::size_t> fewest_first(groups_.size());
    std::iota(fewest_first.begin(), fewest_first.end(), 0);
    std::ranges::stable_sort(fewest_first, [&](std::size_t a, std::size_t b) { return slots[a] < slots[b]; });
    for (const std::size_t g : fewest_first) {
      if (raised[g] == slots[g]) continue;
      const std::uint32_t before = std::exchange(slots[g], raised[g]);
      if (packed(slots).empty())
        slots[g] = before;
      else
        any = true;
    }
    if (!any) break;
  }
  return slots;
}

}  // namespace trellis::sim::core
