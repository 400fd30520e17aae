#include "sim/core/backend/tile_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <tuple>

#include "sim/core/program/first_fit_allocator.h"
#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

struct Change {
  std::uint32_t at;
  bool ends;
  std::int32_t buffer;
  // At one instruction, tiles that begin come before tiles that end.
  bool operator<(const Change& o) const { return std::tie(at, ends, buffer) < std::tie(o.at, o.ends, o.buffer); }
};

std::vector<Change> changes(const TilePools& tiles) {
  std::vector<Change> all;
  for (std::size_t b = 0; b < tiles.lives().size(); ++b) {
    if (tiles.of(b) < 0) continue;
    all.push_back({tiles.lives()[b].first, false, static_cast<std::int32_t>(b)});
    all.push_back({tiles.lives()[b].last, true, static_cast<std::int32_t>(b)});
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Tiles of at most half the partitions (or a quarter) go to each half (or quarter) in turn, so that all DMA engines
// serve them.
std::int32_t turn_of(const CoreBuffer& b, std::uint32_t turn, const ChipSpec& chip) {
  if (b.space != MemorySpace::sbuf || b.partitions > chip.memory.partitions / 2) return 0;
  const std::int32_t parts = b.partitions > chip.memory.partitions / 4 ? 2 : 4;
  return static_cast<std::int32_t>(turn % static_cast<std::uint32_t>(parts)) * (chip.memory.partitions / parts);
}

void place_in_slots(UnscheduledProgram& draft, const TilePools& tiles, const std::vector<std::int64_t>& starts,
                    std::span<const std::uint32_t> slots, const ChipSpec& chip) {
  std::uint32_t turn = 0;
  std::vector<std::deque<std::int64_t>> free(starts.size());
  for (std::size_t g = 0; g < starts.size(); ++g)
    for (std::uint32_t n = 0; n < slots[g]; ++n) free[g].push_back(starts[g] + n * tiles.groups()[g].bytes);
  for (const Change& c : changes(tiles)) {
    CoreBuffer& buffer = draft.program.buffers[static_cast<std::size_t>(c.buffer)];
    auto& slot = free[static_cast<std::size_t>(tiles.of(static_cast<std::size_t>(c.buffer)))];
    if (c.ends) {
      slot.push_back(buffer.offset);
      continue;
    }
    buffer.offset = slot.front();
    slot.pop_front();
    buffer.partition = turn_of(buffer, turn++, chip);
  }
}

[[noreturn]] void fail_full(const UnscheduledProgram& draft, const TilePools& tiles, const Change& now,
                            const FirstFitAllocator& left, std::int64_t has) {
  const CoreBuffer& wanted = draft.program.buffers[static_cast<std::size_t>(now.buffer)];
  std::map<std::int32_t, std::int64_t> held;  // by group
  for (std::size_t b = 0; b < tiles.lives().size(); ++b) {
    const Lifetime& life = tiles.lives()[b];
    const std::int32_t group = tiles.of(b);
    if (group < 0 || life.first > now.at || life.last < now.at) continue;
    const TilePool& g = tiles.groups()[static_cast<std::size_t>(group)];
    if (g.space == wanted.space && g.core == wanted.core) held[group] += g.bytes;
  }
  std::vector<std::pair<std::int64_t, std::int32_t>> most;
  for (const auto& [group, bytes] : held) most.emplace_back(bytes, group);
  std::ranges::sort(most, std::greater());
  std::string holders;
  for (std::size_t n = 0; n < std::min<std::size_t>(most.size(), 3); ++n) {
    const TilePool& g = tiles.groups()[static_cast<std::size_t>(most[n].second)];
    holders += fmt::format("{}{} {}", n == 0 ? "" : ", ",
                           draft.program.buffers[static_cast<std::size_t>(g.example)].name, most[n].first);
  }
  text::refuse("{} is full: {} needs {} bytes a partition, the largest free piece has {} of {}; most is held by {}",
               wanted.space == MemorySpace::psum ? "PSUM" : "SBUF", wanted.name, wanted.bytes, left.largest(), has,
               holders);
}

// Tiles of less than a bank share one, each at a multiple of its size.
std::optional<std::int64_t> take_psum(FirstFitAllocator& space, std::int64_t bytes, const ChipSpec& chip) {
  const auto bank = static_cast<std::int64_t>(chip.memory.psum_bytes) / chip.memory.psum_banks;
  const std::int64_t size = psum_piece(bytes, chip);
  return space.take(size, std::min(size, bank));
}

// Gives each tile the first free place in its space and core while it lives. Throws if there is none.
void place_anywhere(UnscheduledProgram& draft, const TilePools& tiles, const ChipSpec& chip) {
  const auto sbuf = static_cast<std::int64_t>(chip.memory.sbuf_bytes);
  const auto psum = static_cast<std::int64_t>(chip.memory.psum_bytes);
  std::map<std::pair<int, MemorySpace>, FirstFitAllocator> spaces;
  for (int core = 0; core < draft.program.cores; ++core) {
    spaces.emplace(std::pair(core, MemorySpace::sbuf), FirstFitAllocator(sbuf, 64));
    spaces.emplace(std::pair(core, MemorySpace::psum), FirstFitAllocator(psum, psum_unit));
  }
  for (std::size_t b = 0; b < draft.placed.size(); ++b)
    if (const CoreBuffer& buffer = draft.program.buffers[b]; draft.placed[b] && buffer.space != MemorySpace::hbm)
      spaces.at({buffer.core, buffer.space}).hold(buffer.offset, buffer.bytes);
  for (const Change& c : changes(tiles)) {
    CoreBuffer& buffer = draft.program.buffers[static_cast<std::size_t>(c.buffer)];
    FirstFitAllocator& space = spaces.at({buffer.core, buffer.space});
    if (c.ends) {
      space.give(buffer.offset);
      continue;
    }
    const auto at = buffer.space == MemorySpace::psum ? take_psum(space, buffer.bytes, chip) : space.take(buffer.bytes);
    if (!at) fail_full(draft, tiles, c, space, buffer.space == MemorySpace::psum ? psum : sbuf);
    buffer.offset = *at;
  }
}

}  // namespace

void place_tiles(UnscheduledProgram& draft, const TilePools& tiles, std::span<const std::uint32_t> slots,
                 const ChipSpec& chip) {
  const auto least = tiles.least_slots();
  const bool enough = std::ranges::equal(slots, least, std::ranges::greater_equal());
  if (const auto starts = tiles.packed(slots); enough && (!starts.empty() || tiles.groups().empty()))
    return place_in_slots(draft, tiles, starts, slots, chip);
  if (const auto starts = tiles.packed(least); !starts.empty())
    return place_in_slots(draft, tiles, starts, least, chip);
  place_anywhere(draft, tiles, chip);
}

std::int64_t most_bytes(const UnscheduledProgram& draft, const TilePools& tiles, MemorySpace space) {
  std::vector<std::int64_t> live(draft.program.cores, 0);
  std::int64_t most = 0;
  for (const Change& c : changes(tiles)) {
    const TilePool& g = tiles.groups()[static_cast<std::size_t>(tiles.of(static_cast<std::size_t>(c.buffer)))];
    if (g.space != space) continue;
    live[g.core] += c.ends ? -g.bytes : g.bytes;
    most = std::max(most, live[g.core]);
  }
  return most;
}

}  // namespace trellis::sim::core
