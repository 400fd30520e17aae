#include "sim/core/backend/spill.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "sim/core/backend/tile_pools.h"
#include "sim/core/program/first_fit_allocator.h"
#include "sim/core/program/instruction_kind.h"
#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

constexpr std::int64_t sbuf_unit = 64;

class Spiller {
 public:
  Spiller(UnscheduledProgram& draft, const std::vector<std::uint32_t>& order, const ChipSpec& chip)
      : draft_(draft), order_(order), chip_(chip), tiles_(draft.program.buffers.size()) {
    const auto bytes = static_cast<std::int64_t>(chip.memory.sbuf_bytes);
    spaces_.assign(draft.program.cores, FirstFitAllocator(bytes, sbuf_unit));
    for (std::size_t b = 0; b < tiles_.size(); ++b) {
      const CoreBuffer& buffer = draft.program.buffers[b];
      movable_.push_back(buffer.space == MemorySpace::sbuf && !draft.placed[b]);
      if (buffer.space == MemorySpace::sbuf && draft.placed[b]) spaces_[buffer.core].hold(buffer.offset, buffer.bytes);
    }
    for (std::uint32_t at = 0; at < order.size(); ++at)
      for (const std::int32_t b : tiles_of(order[at])) tiles_[static_cast<std::size_t>(b)].uses.push_back(at);
  }

  SpillTotals run() {
    for (std::uint32_t at = 0; at < order_.size(); ++at) step(at);
    return spills_;
  }
  std::vector<std::uint32_t> take_order() { return std::move(made_); }

 private:
  struct Tile {
    std::deque<std::uint32_t> uses;  // where in the order its remaining uses are
    std::int32_t now = -1;           // the buffer that it is in; -1: not on chip
    std::int32_t outside = -1;       // its buffer in HBM
    bool changed = false;            // written to since it was last in HBM
    std::size_t held = 0;            // its index in held_
  };

  std::vector<std::int32_t> tiles_of(std::uint32_t instruction) const {
    std::vector<std::int32_t> found;
    const Instruction& i = draft_.program.instructions[instruction];
    for (std::uint32_t v = 0; v < i.views.count; ++v) {
      const std::int32_t b = draft_.program.views[i.views.first + v].buffer;
      if (movable_[static_cast<std::size_t>(b)] && !std::ranges::count(found, b)) found.push_back(b);
    }
    return found;
  }

  void step(std::uint32_t at) {
    const std::uint32_t number = order_[at];
    const std::vector<std::int32_t> touched = tiles_of(number);
    for (const std::int32_t b : touched) tiles_[static_cast<std::size_t>(b)].uses.pop_front();
    for (const std::int32_t b : touched) bring(b, touched, number);
    const Instruction i = draft_.program.instructions[number];
    for (std::uint32_t v = 0; v < i.views.count; ++v) {
      View& view = draft_.program.views[i.views.first + v];
      if (!std::ranges::count(touched, view.buffer)) continue;
      Tile& t = tiles_[static_cast<std::size_t>(view.buffer)];
      t.changed = t.changed || v < i.outputs;
      view.buffer = t.now;
    }
    made_.push_back(number);
    for (const std::int32_t b : touched)
      if (tiles_[static_cast<std::size_t>(b)].uses.empty()) leave(b);
  }

  void bring(std::int32_t b, const std::vector<std::int32_t>& touched, std::uint32_t number) {
    Tile& t = tiles_[static_cast<std::size_t>(b)];
    if (t.now >= 0) return;
    const CoreBuffer like = draft_.program.buffers[static_cast<std::size_t>(b)];
    std::optional<std::int64_t> place;
    while (!(place = spaces_[like.core].take(like.bytes))) evict(like, touched, number);
    t.now = t.outside < 0 ? b : add(like, b);
    draft_.program.buffers[static_cast<std::size_t>(t.now)].offset = *place;
    draft_.placed[static_cast<std::size_t>(t.now)] = true;
    t.held = held_.size();
    held_.push_back(b);
    if (t.outside >= 0) move(t.now, t.outside, Engine::sync, number);
    t.changed = false;
  }

  void evict(const CoreBuffer& wanted, const std::vector<std::int32_t>& touched, std::uint32_t number) {
    std::int32_t farthest = -1;
    for (const std::int32_t b : held_) {
      const auto n = static_cast<std::size_t>(b);
      if (draft_.program.buffers[n].core != wanted.core || std::ranges::count(touched, b)) continue;
      if (farthest < 0 || tiles_[n].uses.front() > tiles_[static_cast<std::size_t>(farthest)].uses.front())
        farthest = b;
    }
    if (farthest < 0)
      text::refuse("SBUF is full: {} needs {} bytes a partition beside the other tiles of its instruction, of {}",
                   wanted.name, wanted.bytes, static_cast<std::int64_t>(chip_.memory.sbuf_bytes));
    Tile& t = tiles_[static_cast<std::size_t>(farthest)];
    if (t.changed || t.outside < 0) {
      if (t.outside < 0) {
        CoreBuffer outside = draft_.program.buffers[static_cast<std::size_t>(farthest)];
        outside.name += ".spilled";
        outside.space = MemorySpace::hbm;
        outside.bytes *= outside.partitions;
        outside.partitions = 1;
        outside.partition = 0;
        outside.offset = 0;
        t.outside = add(outside, farthest);
      }
      move(t.outside, t.now, Engine::scalar, number);  // not GpSimd, whose software would write each descriptor
    }
    leave(farthest);
  }

  void leave(std::int32_t b) {
    Tile& t = tiles_[static_cast<std::size_t>(b)];
    const CoreBuffer& now = draft_.program.buffers[static_cast<std::size_t>(t.now)];
    spaces_[now.core].give(now.offset);
    held_[t.held] = held_.back();
    tiles_[static_cast<std::size_t>(held_[t.held])].held = t.held;
    held_.pop_back();
    t.now = -1;
  }

  std::int32_t add(CoreBuffer buffer, std::int32_t like) {
    const auto number = static_cast<std::int32_t>(draft_.program.buffers.size());
    if (buffer.space != MemorySpace::hbm) buffer.name += fmt::format(".{}", number);
    draft_.program.buffers.push_back(std::move(buffer));
    draft_.sites.push_back(draft_.sites[static_cast<std::size_t>(like)]);
    draft_.placed.push_back(false);
    return number;
  }

  View whole(std::int32_t b) const {
    const CoreBuffer& buffer = draft_.program.buffers[static_cast<std::size_t>(b)];
    const std::int32_t rows = partitions_;
    const std::int64_t row = buffer.space == MemorySpace::hbm ? buffer.bytes / rows : buffer.bytes;
    const auto size = static_cast<std::int64_t>(kernels::size_of(buffer.type));
    return {.buffer = b,
            .type = buffer.type,
            .rows = rows,
            .row_stride = buffer.space == MemorySpace::hbm ? row : 0,
            .dim = {Dim{static_cast<std::int32_t>(std::max<std::int64_t>(1, row / size)), 1}}};
  }

  void move(std::int32_t to, std::int32_t from, Engine trigger, std::uint32_t cause) {
    NeuronCoreProgram& p = draft_.program;
    const CoreBuffer& on_chip = p.buffers[static_cast<std::size_t>(trigger == Engine::sync ? to : from)];
    partitions_ = on_chip.partitions;
    Instruction i{.kind = &kind_named("dma_copy"), .engine = trigger, .core = on_chip.core, .outputs = 1};
    i.queue = static_cast<std::int16_t>(trigger);
    i.line = p.instructions[cause].line;
    i.views = {static_cast<std::uint32_t>(p.views.size()), 2};
    p.views.push_back(whole(to));
    p.views.push_back(whole(from));
    spills_.bytes += on_chip.bytes * on_chip.partitions;
    ++spills_.moves;
    made_.push_back(static_cast<std::uint32_t>(p.instructions.size()));
    p.instructions.push_back(i);
  }

  UnscheduledProgram& draft_;
  const std::vector<std::uint32_t>& order_;
  const ChipSpec& chip_;
  std::vector<Tile> tiles_;    // by the buffer's number in the draft
  std::vector<bool> movable_;  // by buffer: in SBUF, and its place is not given
  std::vector<FirstFitAllocator> spaces_;
  std::vector<std::int32_t> held_;  // tiles on chip
  std::vector<std::uint32_t> made_;
  std::int32_t partitions_ = 1;  // of the tile that moves
  SpillTotals spills_;
};

}  // namespace

SpillTotals spill_tiles(UnscheduledProgram& draft, std::vector<std::uint32_t>& order, const ChipSpec& chip) {
  Spiller spiller(draft, order, chip);
  const SpillTotals spills = spiller.run();
  order = spiller.take_order();
  return spills;
}

}  // namespace trellis::sim::core
